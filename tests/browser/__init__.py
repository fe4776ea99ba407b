"""A package, so that fixtures can have the scope "package": one Chromium for the tests of this folder."""
