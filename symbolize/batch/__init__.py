"""Many profiles at once: planning, the engines that run it, and a manifest so that nothing is lost or done twice."""
