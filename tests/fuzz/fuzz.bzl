"""How a fuzz target is built: once to be fuzzed, once to replay its corpus."""

load("//third_party:troupe.bzl", "troupe_binary", "troupe_library", "troupe_test")

def troupe_fuzz(name, deps):
    """A libFuzzer target whose source is <name>.cc and corpus is corpus/<name>.

    <name>_fuzz is the fuzzer: run.sh builds it with --config=fuzz, and //...
    leaves it out. <name>_corpus_test runs every input of the corpus once, with
    any compiler.

    Args:
      name: of the source and of the folder of inputs.
      deps: what the source uses.
    """
    corpus = "corpus/" + name
    troupe_library(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        deps = deps,
        alwayslink = True,
    )
    troupe_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name],
    )

    # Bazel does not look into the folder for changes, so this always runs.
    troupe_test(
        name = name + "_corpus_test",
        args = ["tests/fuzz/" + corpus],
        data = [corpus],
        main = False,
        tags = ["external"],
        deps = [
            ":" + name,
            ":replay",
        ],
    )
