// Any text as a model graph, as far as its plan: parsed, made into units, which
// are checked, printed and read back, and planned under a cut that the text's
// checksum chooses. No text may crash the scheduler.
#include <cstdint>
#include <string>

#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/plan.pb.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_units.h"
#include "proto/plan/graph/graph_units.h"
#include "proto/plan/graph/print_graph.h"
#include "tests/fuzz/plan_job.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

void Check(const UnitList& units) {
  Plan plan;
  TrainingSpec& training = *plan.mutable_job()->mutable_training();
  training.set_micro_batch_size(1);
  training.set_sequence_length(1);
  for (const Unit& unit : units.units) *plan.add_units() = unit;
  for (const UnitTable& table : units.tables) *plan.add_tables() = table;
  *plan.mutable_batch() = units.batch;
  CHECK_OK(CheckUnits(plan));
  CHECK_OK(CheckBatch(plan));
}

void ReadBack(const GraphText& text, const UnitList& units) {
  const auto printed = PrintGraph(
      units, {.vocab_size = text.graph.vocab_size(),
              .max_position_embeddings = text.graph.max_position_embeddings()});
  CHECK_OK(printed.status());
  const auto parsed = ParseGraphText("printed", *printed);
  CHECK_OK(parsed.status());
  const auto again = GraphUnits(
      *parsed, {.sequences = 1, .sequence_length = 1, .dropout = 0.5});
  CHECK_OK(again.status());
  CHECK_EQ(again->units.size(), units.units.size());
  CHECK_EQ(again->batch.size(), units.batch.size());
}

void PlanGraph(const std::string& text) {
  static constexpr const char* kSchedules[] = {
      "1f1b", "gpipe",   "interleaved_1f1b", "zb_h1",
      "zb_v", "chimera", "pipedream"};
  uint32_t choice = Crc32c(text);
  const auto choose = [&choice](uint32_t count) {
    const uint32_t chosen = choice % count;
    choice /= count;
    return static_cast<int>(chosen);
  };
  JobSpec job = ExampleJob({.micro_batches = 4});
  job.mutable_model()->Clear();
  job.mutable_model()->set_graph("graph");
  job.mutable_model()->set_graph_text(text);
  job.mutable_training()->set_dropout(choose(2) * 0.1);
  job.mutable_training()->set_sequence_length(4);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.Clear();
  const int ways = choose(4);
  parallelism.set_pipeline(ways == 0 ? 4 : ways == 1 ? 2 : 1);
  parallelism.set_tensor(ways == 2 ? 4 : 1);
  parallelism.set_context(ways == 3 ? 2 : 1);
  parallelism.set_data(4 / parallelism.pipeline() / parallelism.tensor() /
                       parallelism.context());
  if (parallelism.data() * parallelism.context() > 1) {
    parallelism.set_zero(choose(4));
  }
  if (parallelism.pipeline() > 1) {
    parallelism.set_pipeline_schedule(kSchedules[choose(7)]);
  }
  if (choose(2) == 0) {
    job.mutable_memory()->mutable_recompute()->set_mode("full");
  }
  if (choose(4) == 0) job.mutable_training()->add_freeze("*0*");
  PlanJob(job);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto graph = troupe::ParseGraphText("graph", text);
  if (!graph.ok()) {
    CHECK(!graph.status().message().empty());
    return 0;
  }
  const auto units = troupe::GraphUnits(
      *graph, {.sequences = 1, .sequence_length = 1, .dropout = 0.5});
  if (!units.ok()) {
    CHECK(!units.status().message().empty());
    return 0;
  }
  troupe::Check(*units);
  troupe::ReadBack(*graph, *units);
  troupe::PlanGraph(text);
  return 0;
}
