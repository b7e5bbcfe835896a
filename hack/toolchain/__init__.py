"""The tools of the project: what each is made from, where it lies, and when it must be made anew."""
