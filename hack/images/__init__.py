"""Builds the images and packs them into one archive that a node can import. Standard library only."""
