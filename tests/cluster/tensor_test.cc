// Units that are cut over real daemons, from the job file to the losses, the
// checkpoints and a model for others.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

using Settings = std::vector<std::string>;

// Four heads, which four ranks share out. AdamW would make steps of gradients
// that are nothing but roundings.
Settings Job(const Settings& more) {
  Settings settings = {"model.num_attention_heads=4", "training.steps=12",
                       "training.dropout=0.1", "optimizer.eps=1.0e-3",
                       "parallelism.data=1"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void ExpectSame(const std::vector<double>& losses,
                const std::vector<double>& reference) {
  ASSERT_EQ(losses.size(), reference.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_LE(std::abs(losses[i] - reference[i]), 1e-5 * reference[i])
        << "step " << i + 1 << ": " << losses[i] << ", not " << reference[i];
  }
}

class ClusterTensorTest : public ClusterTestBase {};

// Each part of the job is cut in another way, and goes on where the one before
// has stopped.
TEST_F(ClusterTensorTest, AJobGoesOnUnderAnotherCutAndIsExported) {
  Up(4);
  const std::vector<double> one = Losses(Job({}));
  ASSERT_EQ(one.size(), 12u);
  EXPECT_LT(one.back(), one.front());
  const Settings cuts[] = {
      {"parallelism.tensor=2", "parallelism.pipeline=2"},
      {"parallelism.tensor=4", "parallelism.sequence_parallel=true"},
      {"parallelism.tensor=2", "parallelism.data=2",
       "parallelism.sequence_parallel=true"},
  };
  const std::string directory = dir() + "/checkpoints";
  std::vector<double> pieces;
  int job = 0;
  for (int part = 0; part < 3; ++part) {
    Settings settings = Job(cuts[part]);
    settings.push_back("checkpoint.directory=" + directory);
    if (part > 0) settings.push_back("checkpoint.resume=latest");
    settings.push_back(absl::StrCat("training.stop_after=", 4 * (part + 1)));
    job = Submit(settings);
    const Outcome watched = Watch(job);
    ASSERT_EQ(watched.code, 0) << watched.out << watched.err;
    const nlohmann::json described = Describe(job);
    for (const nlohmann::json& step : described["steps"]) {
      pieces.push_back(step["loss"].get<double>());
    }
  }
  ExpectSame(pieces, one);

  const std::string hf = dir() + "/hf";
  const Outcome exported = Troupe({"export", std::to_string(job), "--to", hf});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Outcome imported =
      RunProgram({kTroupe, "import", hf, "--to", dir() + "/imported"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  Settings write = {"--prompt-ids",
                    "1,2,3",
                    "--ids",
                    "--temperature",
                    "1",
                    "--top-k",
                    "0",
                    "--seed",
                    "3",
                    "--max-new-tokens",
                    "8",
                    "--checkpoint"};
  write.insert(write.begin(), "generate");
  write.push_back(directory + "/step-00000012");
  const Outcome before = Troupe(write);
  write.back() = dir() + "/imported/step-00000000";
  const Outcome after = Troupe(write);
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(before.out, after.out);
  EXPECT_NE(before.out.find(','), std::string::npos) << before.out;
}

}  // namespace
}  // namespace troupe
