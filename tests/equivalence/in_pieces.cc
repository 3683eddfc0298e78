#include "tests/equivalence/in_pieces.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {

void ExpectSameInPieces(const JobSpec& job, const std::vector<JobCut>& cuts,
                        const TrainingRun& whole, const Tolerance& tolerance) {
  constexpr int kStepsOfPiece = 2;
  int64_t done = 0;
  for (const JobCut& cut : cuts) {
    JobSpec part = CutJob(job, cut);
    SCOPED_TRACE(absl::StrCat("from step ", done, ": ",
                              part.parallelism().ShortDebugString()));
    part.mutable_training()->set_stop_after(done + kStepsOfPiece);
    const TrainingRun run =
        Train(part, {.ranks = cut.ranks(), .resume = done > 0 ? "latest" : ""});
    ASSERT_TRUE(run.status().ok()) << run.status();
    for (const std::vector<StepRecord>& records : run.steps) {
      ExpectSameSteps(records, whole.steps[0], tolerance);
    }
    done += kStepsOfPiece;
  }
}

}  // namespace troupe
