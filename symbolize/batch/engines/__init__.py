"""What runs tasks in other processes: of this machine, or of a cluster. Knows nothing of profiles."""
