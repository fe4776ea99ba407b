"""What compilediag uses of its process and its machine: files, the program that runs, clock, interrupts, log."""
