"""The page that `symbolize view` writes: one HTML file with the profile in it."""
