#include "proto/plan/graph/graph_units.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_units.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

// A line is an op, so that messages can be told.
constexpr char kGraph[] = R"(vocab_size: 61
max_position_embeddings: 20
unit { name: "embedding"
  op { embed { y: "h" tokens: "wte" positions: "wpe" hidden: 24 init_std: 0.02 } }
}
unit { name: "block.{layer}" repeat: 3
  op { norm { x: "before:h" y: "n" parameters: "{layer}.n" epsilon: 1e-5 } }
  op { linear { x: "n" y: "u" weight { parameters: "{layer}.u" columns { kind: INTERMEDIATE count: 48 } } bias: true init_std: 0.02 } }
  op { gelu { x: "u" y: "g" } }
  op { linear { x: "g" y: "d" weight { parameters: "{layer}.d" columns { count: 24 } } init_std: 0.02 } }
  op { add { x: "d" residual: "before:h" y: "h" } }
}
unit { name: "head"
  op { add { x: "before:h" residual: "block.0:h" y: "s" } }
  op { norm { x: "s" y: "n" parameters: "n" epsilon: 1e-5 } }
  op { loss { x: "n" tied_to: "wte" } }
}
)";

absl::StatusOr<UnitList> Units(const std::string& text) {
  const auto graph = ParseGraphText("my.graph", text);
  if (!graph.ok()) return graph.status();
  return GraphUnits(*graph, {.sequences = 2, .sequence_length = 10});
}

// The graph with one piece of its text replaced by another.
std::string ErrorWith(const std::string& piece, const std::string& by) {
  const std::string text = absl::StrReplaceAll(kGraph, {{piece, by}});
  EXPECT_NE(text, kGraph) << piece;
  const auto units = Units(text);
  return units.ok() ? "" : std::string(units.status().message());
}

Plan PlanOf(const UnitList& units) {
  Plan plan;
  for (const Unit& unit : units.units) *plan.add_units() = unit;
  for (const UnitTable& table : units.tables) *plan.add_tables() = table;
  *plan.mutable_batch() = units.batch;
  TrainingSpec& training = *plan.mutable_job()->mutable_training();
  training.set_micro_batch_size(2);
  training.set_sequence_length(10);
  return plan;
}

TEST(GraphUnits, ReadWhatTheTextSays) {
  const auto units = Units(kGraph);
  ASSERT_TRUE(units.ok()) << units.status();
  ASSERT_EQ(units->units.size(), 5);
  EXPECT_TRUE(CheckUnits(PlanOf(*units)).ok()) << CheckUnits(PlanOf(*units));
  const Unit& head = units->units[4];
  ASSERT_EQ(head.inputs_size(), 2);
  EXPECT_EQ(head.inputs(0).unit(), 3);
  EXPECT_EQ(head.inputs(1).unit(), 1);
  EXPECT_EQ(head.tied(0).unit(), 0);
  // Block 0 has two readers, so two outputs, of one value.
  const UnitTable& block = units->tables[units->units[1].table()];
  EXPECT_EQ(TensorsOfHome(block, TensorSpec::OUTPUT).size(), 2);
  EXPECT_EQ(ValuesOfOutputs(block), (std::vector<int>{0, 0}));
  // The other two are alike.
  EXPECT_EQ(units->units[2].table(), units->units[3].table());
  EXPECT_NE(units->units[1].table(), units->units[2].table());
  EXPECT_EQ(units->units[2].parameters(0).name(), "1.n.weight");
}

TEST(GraphUnits, RefuseWithPlaceAndReason) {
  EXPECT_EQ(
      ErrorWith("x: \"n\" y: \"u\"", "x: \"m\" y: \"u\""),
      "my.graph:8: op linear of unit block.0 reads tensor \"m\", which no "
      "op before it makes");
  EXPECT_EQ(
      ErrorWith("\"block.0:h\"", "\"block.7:h\""),
      "my.graph:14: op add of unit head reads \"block.7:h\", but there is "
      "no unit \"block.7\" before it");
  EXPECT_EQ(ErrorWith("\"block.0:h\"", "\"block.0:n2\""),
            "my.graph:14: an op reads tensor \"n2\" of unit block.0, which no "
            "op of that unit makes");
  EXPECT_EQ(ErrorWith("y: \"g\"", "y: \"u\""),
            "my.graph:9: op gelu of unit block.0 makes tensor \"u\", which is "
            "there already");
  EXPECT_EQ(ErrorWith("count: 24 }", "count: 25 }"),
            "my.graph:11: op add of unit block.0 adds \"d\" of HIDDEN 25 "
            "columns and \"before:h\" of HIDDEN 24");
  EXPECT_EQ(ErrorWith("{layer}.u", "u"),
            "my.graph:8: op linear of unit block.1 has parameter \"u.weight\", "
            "which the model has already");
  EXPECT_EQ(ErrorWith("block.{layer}", "block"),
            "my.graph:6: there are two units \"block\"; put {layer} into the "
            "name of a unit that is repeated");
  EXPECT_EQ(ErrorWith("residual: \"block.0:h\"", "residual: \"before:h\""), "");
  EXPECT_EQ(ErrorWith("tied_to: \"wte\"", "tied_to: \"wpe\""),
            "my.graph:16: op loss of unit head is tied to \"wpe\", which is no "
            "tokens of an embed in a unit before it");
  EXPECT_EQ(
      ErrorWith("op { loss { x: \"n\" tied_to: \"wte\" } }", ""),
      "my.graph:15: op norm of unit head makes tensor \"n\", which nobody "
      "reads");
  EXPECT_EQ(ErrorWith("epsilon: 1e-5", "epsilon: 0"),
            "my.graph:7: op norm of unit block.0 has epsilon 0; use one above "
            "0, as 1e-5, and at most 1");
  EXPECT_EQ(ErrorWith("gelu {", "attention {"),
            "my.graph:9: op attention of unit block.0 reads \"u\", whose "
            "columns are INTERMEDIATE 48; it needs HEADS | KEY_VALUE_HEADS | "
            "KEY_VALUE_HEADS of one width, and a multiple of the latter as "
            "HEADS");
  EXPECT_EQ(ErrorWith("vocab_size: 61", ""),
            "my.graph: vocab_size is 0; use 1 to 16777216");
  EXPECT_EQ(ErrorWith("gelu {", "relu {"),
            "my.graph:9: Message type \"troupe.GraphOp\" has no field named "
            "\"relu\".");
}

// Positions are ids of a batch, and so are tokens under another name.
constexpr char kBatchGraph[] = R"(vocab_size: 61
max_position_embeddings: 20
batch { name: "words" source: "tokens" dim { kind: SEQUENCE } }
batch { name: "places" source: "positions" }
batch { name: "next" source: "next_tokens" }
unit { name: "embedding"
  op { embed { x: "batch:words" y: "w" tokens: "wte" hidden: 24 init_std: 0.02 } }
  op { embed { x: "batch:places" y: "p" tokens: "wpe" hidden: 24 init_std: 0.02 } }
  op { add { x: "w" residual: "p" y: "h" } }
}
unit { name: "head"
  op { norm { x: "before:h" y: "n" parameters: "n" epsilon: 1e-5 } }
  op { loss { x: "n" tied_to: "wte" targets: "batch:next" } }
}
)";

TEST(GraphUnits, ReadTheBatchByName) {
  const auto units = Units(kBatchGraph);
  ASSERT_TRUE(units.ok()) << units.status();
  const Plan plan = PlanOf(*units);
  EXPECT_EQ(CheckUnits(plan), absl::OkStatus());
  EXPECT_EQ(CheckBatch(plan), absl::OkStatus());
  ASSERT_EQ(units->batch.size(), 3);
  EXPECT_EQ(units->batch[1].tensor().name(), "places");
  EXPECT_EQ(units->batch[1].source(), "positions");
  // A row for each position that there may be.
  const Unit& embedding = units->units[0];
  EXPECT_EQ(embedding.parameters(0).dims(0).sections(0).count(), 61);
  EXPECT_EQ(embedding.parameters(1).dims(0).sections(0).count(), 20);
  // What is not declared is what models of language read.
  const auto plain = Units(kGraph);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(CheckBatch(PlanOf(*plain)), absl::OkStatus());
  ASSERT_EQ(plain->batch.size(), 2);
  EXPECT_EQ(plain->batch[0].source(), "tokens");
  EXPECT_EQ(plain->batch[1].source(), "next_tokens");
}

TEST(GraphUnits, RefuseWhatTheBatchHasNot) {
  const auto error = [](const std::string& piece, const std::string& by) {
    const std::string text = absl::StrReplaceAll(kBatchGraph, {{piece, by}});
    EXPECT_NE(text, kBatchGraph) << piece;
    const auto units = Units(text);
    return units.ok() ? "" : std::string(units.status().message());
  };
  EXPECT_EQ(error("source: \"positions\"",
                  "source: \"images\" dim { kind: HEIGHT count: 32 } dim { "
                  "kind: WIDTH count: 32 } dim { kind: CHANNELS count: 3 }"),
            "my.graph:4: tensor \"places\" of the batch is of source "
            "\"images\", which does not exist; use one of tokens, "
            "next_tokens, positions");
  EXPECT_EQ(error("dim { kind: SEQUENCE }", "dim { kind: HEIGHT }"),
            "my.graph:3: tensor \"words\" of the batch has dims HEIGHT; source "
            "tokens makes SEQUENCE");
  EXPECT_EQ(error("kind: SEQUENCE", "kind: SEQUENCE count: 10"),
            "my.graph:3: tensor \"words\" of the batch has a dim with a count; "
            "leave it out: a SEQUENCE is as long as training.sequence_length "
            "says");
  EXPECT_EQ(error("name: \"places\"", "name: \"words\""),
            "my.graph:4: tensor \"words\" of the batch is there twice");
  EXPECT_EQ(error("name: \"places\"", "name: \"documents\""),
            "my.graph:4: tensor \"documents\" of the batch has the name of "
            "what data.isolate_documents loads; use another");
  EXPECT_EQ(error("name: \"places\"", "name: \"a:b\""),
            "my.graph:4: tensor \"a:b\" of the batch needs a name, of one line "
            "and without a colon");
  EXPECT_EQ(error("\"batch:places\"", "\"batch:words\""),
            "my.graph:4: tensor \"places\" of the batch is read by no op");
  EXPECT_EQ(error("\"batch:places\"", "\"batch:placs\""),
            "my.graph:8: op embed of unit embedding reads \"batch:placs\", "
            "which no batch { ... } of the graph declares");
  EXPECT_EQ(error("x: \"batch:words\" ", ""),
            "my.graph:7: op embed of unit embedding reads \"batch:tokens\", "
            "which no batch { ... } of the graph declares");
  EXPECT_EQ(error("\"batch:places\"", "\"places\""),
            "my.graph:8: op embed of unit embedding reads \"places\", where it "
            "needs a tensor of the batch, as \"batch:tokens\"");
  EXPECT_EQ(error("\"batch:places\"", "\"batch:next\""),
            "my.graph:8: op embed of unit embedding reads \"batch:next\" of "
            "source next_tokens, which are no numbers of rows; use one of "
            "tokens or positions");
  EXPECT_EQ(error("targets: \"batch:next\"", "targets: \"batch:words\""),
            "my.graph:13: op loss of unit head has targets \"batch:words\" of "
            "source tokens; use one of next_tokens");
  EXPECT_EQ(error("tied_to: \"wte\"", "tied_to: \"wpe\""),
            "my.graph:13: op loss of unit head is tied to \"wpe\" of 20 rows; "
            "it needs 61, as many as vocab_size says");
  EXPECT_EQ(error("tokens: \"wpe\"", "tokens: \"wpe\" rows: 19"),
            "my.graph:8: op embed of unit embedding has 19 rows; use 20 to "
            "16777216, as ids of positions are below 20");
  EXPECT_EQ(error("tokens: \"wpe\"", "tokens: \"wpe\" rows: 64"), "");
  EXPECT_EQ(error("residual: \"p\"", "residual: \"batch:places\""),
            "my.graph:9: op add of unit embedding reads \"batch:places\" of "
            "the batch; only an embed reads it so, which makes rows of ids");
  EXPECT_EQ(error("name: \"embedding\"", "name: \"batch\""),
            "my.graph:6: \"batch\" is no name of a unit: use one line of at "
            "most 256 bytes without a colon, and not \"before\" or \"batch\"");
}

TEST(GraphUnits, RefuseTextsThatAreNoGraph) {
  EXPECT_EQ(Units("").status().message(),
            "my.graph: vocab_size is 0; use 1 to 16777216");
  EXPECT_EQ(
      Units("vocab_size: 5 max_position_embeddings: 5").status().message(),
      "my.graph: has no `unit { ... }`: there is nothing to train");
  EXPECT_FALSE(Units("unit {").ok());
  EXPECT_FALSE(Units(std::string(kGraphBytesMax + 1, ' ')).ok());
}

}  // namespace
}  // namespace troupe
