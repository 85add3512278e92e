"""Answers in the place of the tools that name single addresses: their options, input and output, from kept tables."""
