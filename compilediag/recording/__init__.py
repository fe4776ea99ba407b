"""Recording: events from the hooks into the file of a session, and the recording that runs in this process."""
