"""Nova and Keystone, one method for each request."""
