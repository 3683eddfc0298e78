"""A library that the system installed: nothing to compile, flags to link."""

def archives(names):
    """Linker flags for static libraries, which may need each other.

    Args:
      names: without the "lib" and the ".a".

    Returns:
      The flags.
    """
    return (["-Wl,--start-group"] +
            ["-l:lib%s.a" % name for name in names] +
            ["-Wl,--end-group"])

def system_library(name, linkopts = [], packed = None, deps = [], **kwargs):
    """A cc_library without sources.

    Args:
      name: the name under which our targets depend on it.
      linkopts: what the linker needs.
      packed: what it needs instead with --config=packed, whose binaries run on
        machines without these libraries: archives, where Debian has them. Those
        that it does not have lie beside such a binary (tests/gpu/pack.sh).
      deps: other system libraries that it needs.
      **kwargs: passed on (defines, visibility, testonly).
    """
    native.cc_library(
        name = name,
        linkopts = linkopts if packed == None else select({
            "//third_party:packed": packed,
            "//conditions:default": linkopts,
        }),
        deps = deps,
        **kwargs
    )
