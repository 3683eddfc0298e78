// Pipelines with real daemons: every schedule, from the job file to the losses
// and the checkpoints.
#include "scheduler/pipelines/pipelines.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

using nlohmann::json;

class PipelinesTest : public ClusterTestBase {
 protected:
  // Of a model deep enough, over 20 steps.
  std::vector<std::string> Settings(std::vector<std::string> more) const {
    more.insert(more.end(), {"model.num_hidden_layers=6", "training.steps=20",
                             "training.dropout=0.1"});
    return more;
  }

  static std::vector<std::string> Cut(const std::string& schedule, int pipeline,
                                      int data) {
    return {"parallelism.pipeline_schedule=" + schedule,
            absl::StrCat("parallelism.pipeline=", pipeline),
            absl::StrCat("parallelism.data=", data)};
  }

  static void ExpectSame(const std::vector<double>& losses,
                         const std::vector<double>& reference) {
    ASSERT_EQ(losses.size(), reference.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_LE(std::abs(losses[i] - reference[i]), 1e-5 * reference[i])
          << "step " << i + 1 << ": " << losses[i] << ", not " << reference[i];
    }
  }
};

TEST_F(PipelinesTest, EverySynchronousScheduleTrainsTheSameModel) {
  Up(4);
  const std::vector<double> one = Losses(Settings({"parallelism.data=1"}));
  ASSERT_EQ(one.size(), 20u);
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) continue;
    for (const int stages : {2, 4}) {
      SCOPED_TRACE(absl::StrCat(pipeline.name, " on ", stages, " ranks"));
      ExpectSame(
          Losses(Settings(Cut(std::string(pipeline.name), stages, 4 / stages))),
          one);
    }
  }
}

// The same on one machine's daemons as on threads, where it is compared with
// what the papers prescribe: here for what only daemons have.
TEST_F(PipelinesTest, AsynchronousSchedulesReportAndSaveEveryStep) {
  Up(4);
  for (const Pipeline& pipeline : Pipelines()) {
    if (!pipeline.asynchronous) continue;
    const std::string name(pipeline.name);
    SCOPED_TRACE(name);
    std::vector<std::string> settings = Settings(Cut(name, 4, 1));
    const std::string directory = dir() + "/" + name;
    settings.insert(settings.end(),
                    {"checkpoint.directory=" + directory, "checkpoint.every=8",
                     "training.validate_every=10"});
    const int job = Submit(settings);
    ASSERT_EQ(Watch(job).code, 0);
    const json described = Describe(job);
    ASSERT_EQ(described["steps"].size(), 20u);
    for (int i = 0; i < 20; ++i) {
      const json& step = described["steps"][i];
      EXPECT_EQ(step["step"], i + 1);
      EXPECT_EQ(step["validation_loss"].is_number(), (i + 1) % 10 == 0);
    }
    EXPECT_LT(described["steps"][19]["loss"], described["steps"][0]["loss"]);
    EXPECT_EQ(described["checkpoints"].size(), 3u);
    // One rank can go on with it, and speak.
    settings = Settings({"parallelism.data=1", "training.stop_after=14"});
    settings.push_back("checkpoint.directory=" + directory);
    settings.push_back("checkpoint.resume=" + directory + "/step-00000008");
    EXPECT_EQ(Losses(settings).size(), 6u);
    const Outcome text =
        Troupe({"generate", "--checkpoint", directory + "/step-00000020",
                "--prompt", "line", "--max-new-tokens", "8"});
    EXPECT_EQ(text.code, 0) << text.err;
  }
}

TEST_F(PipelinesTest, AJobGoesOnUnderAnotherSchedule) {
  Up(4);
  const std::vector<double> one = Losses(Settings({"parallelism.data=1"}));
  std::vector<double> pieces;
  int done = 0;
  for (const auto& cut : {Cut("1f1b", 4, 1), Cut("zb_v", 2, 2),
                          Cut("chimera", 4, 1), Cut("gpipe", 2, 1)}) {
    std::vector<std::string> settings = Settings(cut);
    settings.push_back("checkpoint.directory=" + dir() + "/checkpoints");
    if (done > 0) settings.push_back("checkpoint.resume=latest");
    done += 5;
    settings.push_back(absl::StrCat("training.stop_after=", done));
    const std::vector<double> losses = Losses(settings);
    pieces.insert(pieces.end(), losses.begin(), losses.end());
  }
  ExpectSame(pieces, one);
}

}  // namespace
}  // namespace troupe
