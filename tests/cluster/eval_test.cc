// What several daemons measure together: `troupe eval`.
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

class EvalTest : public ClusterTestBase {
 protected:
  // `troupe eval --json` of the model on the tiny text.
  nlohmann::json Eval(const std::string& model,
                      const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> words = {"eval", model, "--tokens",
                                      dir() + "/tiny.tokens", "--json"};
    for (const std::string& setting : settings) {
      words.insert(words.end(), {"--set", setting});
    }
    const Outcome outcome = Troupe(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
};

TEST_F(EvalTest, IsTheValidationLossHoweverTheWorkersShareIt) {
  Up(4);
  const int job = Submit({"data.validation_fraction=null",
                          "data.validation=" + dir() + "/tiny.tokens",
                          "training.validate_every=4",
                          "training.validation_sequences=100000",
                          "checkpoint.directory=" + dir() + "/checkpoints"});
  ASSERT_EQ(Watch(job).code, 0);
  const nlohmann::json trained = Describe(job);
  const double validation = trained["last_step"]["validation_loss"];
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{
           {},
           {"parallelism.data=3"},
           {"parallelism.tensor=2", "parallelism.pipeline=2"},
           {"parallelism.data=2", "parallelism.zero=3"}}) {
    const nlohmann::json measured = Eval(dir() + "/checkpoints", settings);
    EXPECT_NEAR(measured["loss"], validation, 1e-5);
    EXPECT_NEAR(measured["perplexity"], std::exp(validation), 1e-3);
    EXPECT_EQ(measured["sequence_length"], 16);
    const int64_t windows = measured["windows"];
    EXPECT_GT(windows, 1000);
    EXPECT_EQ(measured["tokens"], windows * 16);
  }
  // All of the cluster, unless the user says otherwise.
  const nlohmann::json status = Describe(job + 1);
  EXPECT_EQ(status["workers"].size(), 4u);
  EXPECT_EQ(status["steps_done"], status["steps_total"]);
  EXPECT_TRUE(status["checkpoints"].empty());

  // The model alone, as transformers would read it.
  const Outcome exported =
      Troupe({"export", std::to_string(job), "--to", dir() + "/hf"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NEAR(Eval(dir() + "/hf")["loss"], validation, 1e-5);

  const Outcome refused =
      Troupe({"eval", dir() + "/hf", "--tokens", dir() + "/tiny.tokens",
              "--set", "optimizer.lr=1e-3"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("--set optimizer.lr: is of training"),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace troupe
