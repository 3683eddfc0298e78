// Schemas of batches: where their tensors lie, what ranks load of them, an
// image that lacks nothing but a source, and plans that are broken in what only
// their batch has.
#include "proto/plan/batch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/ports.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(const BatchSchema& batch) {
  std::vector<std::string> names;
  for (const BatchTensor& tensor : batch) {
    names.push_back(tensor.tensor().name() + " of " + tensor.source());
  }
  return names;
}

TEST(Batch, IsWhatUnitsRead) {
  JobSpec job = ExampleJob({.micro_batch_size = 2});
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(NamesOf(plan.batch()),
              ElementsAre("tokens of tokens", "targets of next_tokens"));
  EXPECT_THAT(BatchOffsets(plan.batch()), ElementsAre(0, 64, 128));
  EXPECT_TRUE(ReadsBatch(plan, plan.units(0)));
  EXPECT_FALSE(ReadsBatch(plan, plan.units(1)));

  job.mutable_data()->set_isolate_documents(true);
  const Plan isolating = ExamplePlan(job);
  EXPECT_EQ(isolating.batch_size(), 3);
  EXPECT_TRUE(ReadsBatch(isolating, isolating.units(1)));
}

// Each rank what the units of its stages read.
TEST(Batch, IsLoadedWhereItIsRead) {
  JobSpec job = ExampleJob({.micro_batches = 2, .micro_batch_size = 2});
  EXPECT_THAT(LoadedTensors(ExamplePlan(job), 0), ElementsAre(true, true));
  job.mutable_parallelism()->set_pipeline(2);
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(LoadedTensors(plan, 0), ElementsAre(true, false));
  EXPECT_THAT(LoadedTensors(plan, 1), ElementsAre(false, true));
  job.mutable_data()->set_isolate_documents(true);
  EXPECT_THAT(LoadedTensors(ExamplePlan(job), 1),
              ElementsAre(false, true, true));
}

// Of ranks that share the positions, each loads some; of where documents begin,
// all that a whole sequence has.
TEST(Batch, IsLoadedAsItsDimsAreCut) {
  JobSpec job = ExampleJob({.data = 2, .micro_batch_size = 2});
  job.mutable_data()->set_isolate_documents(true);
  job.mutable_parallelism()->set_context(2);
  job.mutable_parallelism()->set_context_method("ring");
  const Plan plan = ExamplePlan(job);
  std::vector<bool> seen(8, false);
  for (const int rank : {0, 1}) {
    const MeshPlace place = {&plan.mesh(), rank};
    const LoadedPiece tokens =
        LoadedBy(*FindBatchTensor(plan.batch(), kBatchTokens), place);
    EXPECT_EQ(tokens.samples, (Range{0, 2}));
    ASSERT_EQ(tokens.dims.size(), 1u);
    EXPECT_EQ(tokens.dims[0].whole, 8);
    EXPECT_EQ(tokens.dims[0].local, 4);
    for (const Range& run : tokens.dims[0].runs) {
      for (int64_t t = run.begin; t < run.end; ++t) {
        EXPECT_FALSE(seen[t]);
        seen[t] = true;
      }
    }
    const LoadedPiece documents =
        LoadedBy(*FindBatchTensor(plan.batch(), kBatchDocuments), place);
    EXPECT_THAT(documents.dims[0].runs, ElementsAre(Range{0, 8}));
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 8);
}

JobSpec ContextJob() {
  JobSpec job = ExampleJob({.data = 2, .micro_batch_size = 2});
  job.mutable_data()->set_isolate_documents(true);
  job.mutable_parallelism()->set_context(2);
  job.mutable_parallelism()->set_context_method("ring");
  return job;
}

BatchTensor& Loaded(Plan& plan, const std::string& name) {
  for (BatchTensor& tensor : *plan.mutable_batch()) {
    if (tensor.tensor().name() == name) return tensor;
  }
  ADD_FAILURE() << "no " << name;
  return *plan.mutable_batch(0);
}

// Calls visit for what each table reads under the name.
template <typename Visit>
void VisitRead(Plan& plan, const std::string& name, const Visit& visit) {
  for (UnitTable& table : *plan.mutable_tables()) {
    for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
      if (table.tensors(t).name() == name) visit(*table.mutable_tensors(t));
    }
  }
}

void MakeWhole(TensorSpec& tensor) {
  Dim::Section& positions = *tensor.mutable_dims(1)->mutable_sections(0);
  positions.clear_cuts();
  positions.set_count(8);
  tensor.clear_layout();
}

const PlantedFault kFaults[] = {
    {"what a unit reads in another cut than it is loaded in",
     [](Plan& p) { VisitRead(p, kBatchTargets, MakeWhole); },
     "reads targets of the batch as BATCH 2 x SEQUENCE 8, but it is loaded as "
     "BATCH 2 x SEQUENCE 4 ("},
    {"what is loaded in another cut than units read",
     [](Plan& p) { MakeWhole(*Loaded(p, kBatchTokens).mutable_tensor()); },
     "unit 0 reads tokens of the batch as BATCH 2 x SEQUENCE 4"},
    {"all agree on another cut than that of the rows",
     [](Plan& p) {
       VisitRead(p, kBatchTargets, MakeWhole);
       MakeWhole(*Loaded(p, kBatchTargets).mutable_tensor());
     },
     "CROSS_ENTROPY computes rows BATCH 2 x SEQUENCE 4 ("},
    {"in an order that is not that of the rows",
     [](Plan& p) {
       const auto straight = [](TensorSpec& tensor) {
         tensor.mutable_dims(1)
             ->mutable_sections(0)
             ->mutable_cuts(0)
             ->set_zigzag(false);
       };
       VisitRead(p, kBatchTokens, straight);
       straight(*Loaded(p, kBatchTokens).mutable_tensor());
     },
     "EMBED computes rows"},
    {"documents of the positions of one rank",
     [](Plan& p) {
       const auto cut = [](TensorSpec& tensor) {
         tensor.mutable_dims(1)->mutable_sections(0)->set_count(4);
       };
       VisitRead(p, kBatchDocuments, cut);
       cut(*Loaded(p, kBatchDocuments).mutable_tensor());
     },
     "tensor documents of the batch is I32 BATCH 2 x KEYS 4, which "
     "document_starts does not make of 8 positions"},
    {"other samples",
     [](Plan& p) {
       Loaded(p, kBatchTokens)
           .mutable_tensor()
           ->mutable_dims(0)
           ->mutable_sections(0)
           ->set_count(77);
     },
     "tensor tokens of the batch is BATCH 77 x SEQUENCE 4"},
    {"a unit that reads what is not loaded",
     [](Plan& p) { p.mutable_batch()->RemoveLast(); },
     "of the batch, which is not loaded"},
    {"what nobody reads",
     [](Plan& p) {
       *p.add_batch() = p.batch(0);
       p.mutable_batch(p.batch_size() - 1)->mutable_tensor()->set_name("more");
     },
     "tensor more of the batch is loaded, and no unit reads it"},
    {"two of one name", [](Plan& p) { *p.add_batch() = p.batch(0); },
     "tensor tokens of the batch has no name of its own"},
    {"another source",
     [](Plan& p) { Loaded(p, kBatchTargets).set_source("ears"); },
     "comes from ears, which is no source"},
    {"a job that does not isolate documents",
     [](Plan& p) {
       p.mutable_job()->mutable_data()->set_isolate_documents(false);
     },
     "though the job does not isolate documents"},
};

TEST(CheckBatch, NamesTheFault) {
  const Plan whole = ExamplePlan(ContextJob());
  ASSERT_EQ(CheckBatch(whole), absl::OkStatus());
  for (const PlantedFault& fault : kFaults) {
    Plan plan = whole;
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckBatch(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace
}  // namespace troupe
