"""What every hook is made of: patches, shields, late imports, a source's status."""
