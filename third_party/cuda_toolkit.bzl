"""The CUDA toolkit of this machine as the repository @cuda, if there is one.

It lies where the environment's CUDA_HOME says, or in /usr/local/cuda. Without
one the repository is there all the same, so that everything else loads and
builds; what is built with --config=cuda then fails and says why.
"""

_LIBRARIES = {
    "cudart": ["-lcudart_static", "-ldl", "-lpthread", "-lrt"],
    "cublaslt": ["-lcublasLt"],
    "nccl": ["-lnccl"],
}

_HEAD = """# Written by third_party/cuda_toolkit.bzl.
package(default_visibility = ["//visibility:public"])
load("@troupe//third_party:cuda_toolkit.bzl", "no_toolkit")
"""

_ABSENT = """
no_toolkit(
    name = "{name}",
    home = "{home}",
    target_compatible_with = select({{
        "@troupe//third_party:cuda": [],
        "//conditions:default": ["@troupe//third_party:cuda_toolkit"],
    }}),
)
"""

_PRESENT = """
cc_library(
    name = "{name}",
    deps = [":headers"],
    # What is packed finds them on the other machine.
    linkopts = {linkopts} + select({{
        "@troupe//third_party:packed": [],
        "//conditions:default": ["-Wl,-rpath,{home}/lib64"],
    }}),
    target_compatible_with = select({{
        "@troupe//third_party:cuda": [],
        "//conditions:default": ["@troupe//third_party:cuda_toolkit"],
    }}),
)
"""

_HEADERS = """
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)
"""

def _no_toolkit_impl(ctx):
    fail(("no CUDA toolkit in %s: set CUDA_HOME, or build without " +
          "--config=cuda (third_party/install.sh --cuda says more)") %
         ctx.attr.home)

no_toolkit = rule(
    implementation = _no_toolkit_impl,
    attrs = {"home": attr.string()},
)

def _version(repository_ctx, home):
    """CUDA_VERSION of its header, e.g. 13000 for 13.0."""
    text = repository_ctx.read(home + "/include/cuda.h")
    return text.split("#define CUDA_VERSION ")[1].split("\n")[0].strip()

def _cuda_toolkit_impl(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    present = (repository_ctx.path(home + "/bin/nvcc").exists and
               repository_ctx.path(home + "/include/cuda.h").exists)
    build = _HEAD
    if present:
        repository_ctx.symlink(home + "/include", "include")
        build += _HEADERS
    where = ["-L%s/lib64" % home]
    for name, linkopts in _LIBRARIES.items():
        build += (_PRESENT if present else _ABSENT).format(
            name = name,
            home = home,
            linkopts = where + linkopts,
        )
    repository_ctx.file("BUILD.bazel", build)
    repository_ctx.file("toolkit.bzl", "HOME = \"%s\"\nVERSION = \"%s\"\n" % (
        home,
        _version(repository_ctx, home) if present else "",
    ))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["CUDA_HOME"],
    configure = True,
    local = True,
)
