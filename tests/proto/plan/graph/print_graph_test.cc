// Every family, printed as a graph and read again, is the same units: the same
// ops and parameters, initial values and masks, places and work.
#include "proto/plan/graph/print_graph.h"

#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/plan/graph/graph_units.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/gpt2_spec.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

std::vector<ModelSpec> Families() {
  std::vector<ModelSpec> models = {Gpt2(3, 48, 4)};
  models.push_back(models.front());
  models.back().set_tie_word_embeddings(false);
  for (const char* const name :
       {"gpt_neox", "llama", "mistral", "qwen2", "qwen3"}) {
    ModelSpec& model = models.emplace_back();
    model.set_architecture(name);
    model.set_num_hidden_layers(3);
    model.set_hidden_size(48);
    model.set_num_attention_heads(4);
    model.set_vocab_size(100);
    model.set_max_position_embeddings(32);
    if (model.architecture() == "gpt_neox") {
      model.set_partial_rotary_factor(0.5);
    } else {
      model.set_num_key_value_heads(2);
    }
    EXPECT_TRUE(ResolveModel(model).ok());
  }
  return models;
}

// Names of tensors are for people.
UnitTable WithoutNames(UnitTable table) {
  for (TensorSpec& tensor : *table.mutable_tensors()) tensor.clear_name();
  return table;
}

void ExpectSame(const UnitList& a, const UnitList& b) {
  using google::protobuf::util::MessageDifferencer;
  ASSERT_EQ(a.batch.size(), b.batch.size());
  for (int t = 0; t < a.batch.size(); ++t) {
    EXPECT_TRUE(MessageDifferencer::Equals(a.batch[t], b.batch[t]));
  }
  ASSERT_EQ(a.units.size(), b.units.size());
  for (size_t u = 0; u < a.units.size(); ++u) {
    Unit left = a.units[u];
    Unit right = b.units[u];
    EXPECT_TRUE(
        MessageDifferencer::Equals(WithoutNames(a.tables[left.table()]),
                                   WithoutNames(b.tables[right.table()])))
        << "unit " << u;
    left.clear_table();
    right.clear_table();
    EXPECT_TRUE(MessageDifferencer::Equals(left, right))
        << left.ShortDebugString() << "\n\n"
        << right.ShortDebugString();
  }
}

TEST(PrintGraph, OfEveryFamilyIsReadAsTheSameUnits) {
  for (const ModelSpec& model : Families()) {
    SCOPED_TRACE(model.architecture());
    const MicroBatchShape printed = {
        .sequences = 1, .sequence_length = 1, .dropout = 0.5};
    const auto text = PrintGraph(
        ModelUnits(model, printed).value(),
        {.vocab_size = model.vocab_size(),
         .max_position_embeddings = model.max_position_embeddings()});
    ASSERT_TRUE(text.ok()) << text.status();
    const auto graph = ParseGraphText("printed", *text);
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << *text;
    // Three blocks are one that is repeated.
    EXPECT_EQ(graph->graph.unit_size(), 3) << *text;
    for (const double dropout : {0.0, 0.1}) {
      for (const ElementType dtype : {F32, BF16}) {
        const MicroBatchShape shape = {.sequences = 2,
                                       .sequence_length = 24,
                                       .dtype = dtype,
                                       .dropout = dropout};
        const auto units = GraphUnits(*graph, shape);
        ASSERT_TRUE(units.ok()) << units.status() << "\n" << *text;
        ExpectSame(*units, ModelUnits(model, shape).value());
      }
    }
  }
}

// With tensors of the batch that no family reads.
TEST(PrintGraph, SaysWhatOfTheBatchIsReadAndHowManyRowsThereAre) {
  constexpr char kText[] = R"(vocab_size: 61 max_position_embeddings: 20
    batch { name: "words" source: "tokens" }
    batch { name: "places" source: "positions" }
    batch { name: "next" source: "next_tokens" }
    unit { name: "all"
      op { embed { x: "batch:words" y: "w" tokens: "wte" hidden: 24 } }
      op { embed { x: "batch:places" y: "p" tokens: "wpe" hidden: 24 rows: 64 } }
      op { add { x: "w" residual: "p" y: "h" } }
      op { loss { x: "h" weight: "w" targets: "batch:next" } } })";
  const MicroBatchShape shape = {
      .sequences = 2, .sequence_length = 10, .dropout = 0.5};
  const auto graph = ParseGraphText("given", kText);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto units = GraphUnits(*graph, shape);
  ASSERT_TRUE(units.ok()) << units.status();
  const auto text =
      PrintGraph(*units, {.vocab_size = 61, .max_position_embeddings = 20});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("batch {\n  name: \"places\"\n  source: \"positions\""),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("rows: 64"), std::string::npos) << *text;
  EXPECT_EQ(text->find("rows: 61"), std::string::npos) << *text;
  const auto again = GraphUnits(*ParseGraphText("printed", *text), shape);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << *text;
  ExpectSame(*units, *again);
}

}  // namespace
}  // namespace troupe
