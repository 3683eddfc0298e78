// A job that stops and resumes under another pipeline schedule, with another
// number of stages or of replicas, trains the model that a single rank trains
// without a pause.
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"

namespace troupe {
namespace {

// Runs the job in pieces, each cut in its own way and resumed from where the
// one before stopped.
void ExpectPiecesAreTheWhole(JobSpec job, const std::vector<PipelineCut>& cuts,
                             double relative_error = kRelativeError) {
  const std::string directory = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(directory);
  const TrainingRun whole = Train(job, {});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  job.mutable_checkpoint()->set_directory(directory);
  const int64_t steps = job.training().steps();
  const int64_t pieces = static_cast<int64_t>(cuts.size());
  int64_t done = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const PipelineCut& cut = cuts[piece];
    SCOPED_TRACE(testing::Message()
                 << "piece " << piece << ": " << cut.schedule << ", "
                 << cut.pipeline << " x " << cut.data);
    const int64_t end = steps * (piece + 1) / pieces;
    JobSpec part = CutJob(job, cut);
    part.mutable_training()->set_stop_after(end);
    const TrainingRun run =
        Train(part, {.ranks = cut.ranks(), .resume = done > 0 ? "latest" : ""});
    ASSERT_TRUE(run.status().ok()) << run.status();
    for (std::vector<StepRecord> records : run.steps) {
      ASSERT_EQ(records.size(), static_cast<size_t>(end - done));
      // A run validates at its end, where the whole one goes on.
      if (end < steps) records.back().clear_validation_loss();
      ExpectSameSteps(records, whole.steps[0], relative_error);
    }
    done = end;
  }
}

TEST(PipelineResume, EveryScheduleContinuesWhatAnotherOneBegan) {
  JobSpec job = PipelineJob({.dropout = 0.1});
  job.mutable_training()->set_validate_every(0);
  ExpectPiecesAreTheWhole(job,
                          {{.schedule = "1f1b", .pipeline = 2},
                           {.schedule = "zb_v", .pipeline = 4},
                           {.schedule = "chimera", .pipeline = 2, .data = 2},
                           {.schedule = "gpipe", .pipeline = 4, .data = 2},
                           {.schedule = "interleaved_1f1b", .pipeline = 2},
                           {.schedule = "zb_h2", .pipeline = 4},
                           {.schedule = "naive", .pipeline = 1, .data = 2},
                           {.schedule = "chimera", .pipeline = 4},
                           {.schedule = "zb_h1", .pipeline = 2, .data = 2},
                           {.schedule = "naive", .pipeline = 8}});
}

TEST(PipelineResume, UntiedTablesMoveWithTheirStages) {
  JobSpec job = PipelineJob({.architecture = "llama", .tied = false});
  job.mutable_training()->set_validate_every(0);
  ExpectPiecesAreTheWhole(job, {{.schedule = "zb_h1", .pipeline = 4},
                                {.schedule = "naive", .pipeline = 1},
                                {.schedule = "chimera", .pipeline = 4},
                                {.schedule = "1f1b", .pipeline = 3}});
}

TEST(PipelineResume, MasterWeightsMoveWithTheirStages) {
  JobSpec job = PipelineJob({});
  job.mutable_training()->set_precision("bf16");
  job.mutable_training()->set_validate_every(0);
  ExpectPiecesAreTheWhole(job,
                          {{.schedule = "1f1b", .pipeline = 4},
                           {.schedule = "zb_v", .pipeline = 2},
                           {.schedule = "naive", .pipeline = 1, .data = 2}},
                          1e-2);
}

}  // namespace
}  // namespace troupe
