"""A symbol server: names for addresses, symbolized profiles and debug files over HTTP, from folders of binaries."""
