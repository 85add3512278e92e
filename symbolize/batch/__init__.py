"""Many profiles at once: tasks, and the engines that run them."""
