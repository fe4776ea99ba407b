"""TORCH_TRACE logs and folders as session files: find them, unpack them, decode them, write their events."""
