"""A library that the system installed: nothing to compile, flags to link."""

def system_library(name, linkopts = [], deps = [], **kwargs):
    """A cc_library without sources.

    Args:
      name: the name under which our targets depend on it.
      linkopts: what the linker needs.
      deps: other system libraries that it needs.
      **kwargs: passed on (defines, visibility, testonly).
    """
    native.cc_library(
        name = name,
        linkopts = linkopts,
        deps = deps,
        **kwargs
    )
