#include "tests/graphs/skip_graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"

namespace troupe {
namespace {

constexpr char kGraph[] = R"(vocab_size: VOCABULARY
max_position_embeddings: POSITIONS
unit { name: "embedding"
  op { embed { y: "e" tokens: "wte" positions: "wpe" hidden: HIDDEN init_std: STD } }
  op { dropout { x: "e" y: "h" } }
}
unit { name: "block.{layer}" repeat: BLOCKS
BODY}
unit { name: "last"
  op { norm { x: "before:h" residual: "block.0:h" sum: "in" y: "in norm" parameters: "last.in" epsilon: 1e-5 } }
  op { linear { x: "in norm" y: "mixed" weight { parameters: "last.mix" columns { count: HIDDEN } } bias: true init_std: STD } }
  op { add { x: "mixed" residual: "in" y: "h" } }
}
unit { name: "head"
  op { add { x: "before:h" residual: "block.0:h" y: "s" } }
  op { norm { x: "s" y: "n" parameters: "norm" epsilon: 1e-5 } }
  op { loss { x: "n" LOSS } }
}
)";

constexpr char kBody[] = R"(
  op { norm { x: "before:h" y: "n1" parameters: "{layer}.n1" epsilon: 1e-5 } }
  op { linear { x: "n1" y: "qkv" in_out: true bias: true init_std: STD
    weight { parameters: "{layer}.qkv"
      columns { kind: HEADS count: HEAD_COUNT width: WIDTH }
      columns { kind: KEY_VALUE_HEADS count: HEAD_COUNT width: WIDTH }
      columns { kind: KEY_VALUE_HEADS count: HEAD_COUNT width: WIDTH } } } }
  op { attention { x: "qkv" y: "a" } }
  op { linear { x: "a" y: "o" in_out: true bias: true init_std: STD
    weight { parameters: "{layer}.o" columns { count: HIDDEN } } } }
  op { dropout { x: "o" y: "od" } }
  op { norm { x: "od" residual: "before:h" sum: "r" y: "n2" parameters: "{layer}.n2" epsilon: 1e-5 } }
  op { linear { x: "n2" y: "u" in_out: true bias: true init_std: STD
    weight { parameters: "{layer}.u" columns { kind: INTERMEDIATE count: INNER } } } }
  op { gelu { x: "u" y: "g" } }
  op { linear { x: "g" y: "d" in_out: true bias: true init_std: STD
    weight { parameters: "{layer}.d" columns { count: HIDDEN } } } }
  op { dropout { x: "d" y: "dd" } }
  op { add { x: "dd" residual: "r" y: "h" } }
)";

}  // namespace

std::string SkipGraph(const SkipSizes& sizes) {
  const std::string loss =
      sizes.tied ? "tied_to: \"wte\"" : "weight: \"out\" init_std: STD";
  const std::string text =
      absl::StrReplaceAll(kGraph, {{"BODY", kBody}, {"LOSS", loss}});
  return absl::StrReplaceAll(
      text, {{"VOCABULARY", absl::StrCat(sizes.vocabulary)},
             {"POSITIONS", absl::StrCat(sizes.positions)},
             {"BLOCKS", absl::StrCat(sizes.blocks - 1)},
             {"HIDDEN", absl::StrCat(sizes.hidden)},
             {"HEAD_COUNT", absl::StrCat(sizes.heads)},
             {"WIDTH", absl::StrCat(sizes.hidden / sizes.heads)},
             {"INNER", absl::StrCat(sizes.intermediate)},
             {"STD", absl::StrCat(sizes.init_std)}});
}

ModelSpec SkipModel(const SkipSizes& sizes) {
  ModelSpec model;
  model.set_graph("skip.graph");
  model.set_graph_text(SkipGraph(sizes));
  CHECK_OK(ResolveModel(model));
  return model;
}

}  // namespace troupe
