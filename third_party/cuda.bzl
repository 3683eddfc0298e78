"""How CUDA sources are built: nvcc compiles them for architectures named below,
and the objects join the libraries of the C++ rules like any others.

All targets of CUDA are built by --config=cuda only; without it `//...` skips
them.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:toolkit.bzl", "HOME", "VERSION")
load("//third_party:troupe.bzl", "troupe_library", "troupe_test")

# For target_compatible_with.
WITH_CUDA = select({
    "//third_party:cuda": [],
    "//conditions:default": ["//third_party:cuda_toolkit"],
})

# The oldest, and its PTX, which every later one compiles when it first runs it:
# enough where the kernels are built, a third of the work of all.
_OLDEST = ["arch=compute_80,code=[sm_80,compute_80]"]

# What is carried to other machines: A100 and its kin, H100 and H200, B200; what
# comes later compiles the PTX.
_ALL = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90a,code=sm_90a",
    "arch=compute_100,code=[sm_100,compute_100]",
]

_FLAGS = [
    "-std=c++20",
    "-O3",
    "-Werror=all-warnings",
    "--expt-relaxed-constexpr",
    "-Xptxas=-v",
    "-Xcompiler=-fPIC",
]

def _compile(ctx, context, source):
    """The object of one source; beside it what ptxas said of its kernels."""
    name = source.basename[:-len(".cu")]
    object = ctx.actions.declare_file(name + ".cu.o")
    report = ctx.actions.declare_file(name + ".ptxas.txt")
    arguments = ctx.actions.args()
    arguments.add(report)
    arguments.add(HOME + "/bin/nvcc")
    arguments.add("-ccbin=g++")
    arguments.add_all(_FLAGS)
    arguments.add_all(ctx.attr.architectures, format_each = "-gencode=%s")
    arguments.add_all(context.quote_includes, format_each = "-I%s")
    arguments.add_all(context.system_includes, before_each = "-isystem")
    arguments.add_all(["-c", source, "-o", object])
    ctx.actions.run_shell(
        inputs = depset([source], transitive = [context.headers]),
        outputs = [object, report],
        # The toolkit is no input, so its version is part of the action.
        env = {"CUDA_VERSION": VERSION, "PATH": "/usr/bin:/bin"},
        arguments = [arguments],
        command = 'report=$1; shift; "$@" >$report 2>&1 || ' +
                  "{ cat $report >&2; exit 1; }",
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s" % source.short_path,
    )
    return object, report

def _cuda_library_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        unsupported_features = ctx.disabled_features,
    )
    infos = [dep[CcInfo] for dep in ctx.attr.deps]
    merged = cc_common.merge_cc_infos(cc_infos = infos)
    outputs = [
        _compile(ctx, merged.compilation_context, source)
        for source in ctx.files.srcs
    ]
    objects = depset([object for object, _ in outputs])
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = objects,
        ),
        linking_contexts = [info.linking_context for info in infos],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = objects),
        OutputGroupInfo(resources = depset([report for _, report in outputs])),
        CcInfo(
            compilation_context = merged.compilation_context,
            linking_context = linking,
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "architectures": attr.string_list(doc = "as nvcc's -gencode has them"),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, deps = [], **kwargs):
    """A library of .cu sources, for C++ targets to depend on.

    `bazel build --output_groups=resources` gives what ptxas reports of each
    source: registers, shared memory and spills of its kernels.

    Args:
      name: of the target.
      deps: cc_library targets, whose headers the sources include.
      **kwargs: passed on (srcs, visibility, testonly).
    """
    _cuda_library(
        name = name,
        deps = deps + ["//third_party:cudart"],
        architectures = select({
            "//third_party:packed": _ALL,
            "//conditions:default": _OLDEST,
        }),
        target_compatible_with = WITH_CUDA,
        **kwargs
    )

def cuda_cc_library(name, **kwargs):
    """A troupe_library that uses CUDA's headers or libraries."""
    troupe_library(name = name, target_compatible_with = WITH_CUDA, **kwargs)

def _linked_impl(ctx):
    return [CcInfo(linking_context = ctx.attr.library[CcInfo].linking_context)]

_linked = rule(
    implementation = _linked_impl,
    attrs = {"library": attr.label(providers = [CcInfo])},
)

def cuda_or_absent_library(name, present, absent, deps = [], **kwargs):
    """Headers without CUDA, and what is behind them: one library or another.

    Those who include the headers are linked with it but see nothing else of it,
    so that they are compiled alike in both configurations.

    Args:
      name: of the target.
      present: the library with --config=cuda.
      absent: the library that stands for it otherwise.
      deps: what the headers include.
      **kwargs: passed on (hdrs, visibility).
    """
    _linked(
        name = name + "_linked",
        library = select({
            "//third_party:cuda": present,
            "//conditions:default": absent,
        }),
    )
    troupe_library(name = name, deps = deps + [":" + name + "_linked"], **kwargs)

def cuda_test(name, **kwargs):
    """A troupe_test of what is there with CUDA only."""
    troupe_test(name = name, target_compatible_with = WITH_CUDA, **kwargs)
