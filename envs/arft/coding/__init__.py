"""ArftCoding: an image has something wrong, and code can repair it."""
