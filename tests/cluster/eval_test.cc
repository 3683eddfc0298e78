// What several daemons measure together: `troupe eval`.
#include <cmath>
#include <filesystem>
#include <fstream>
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

// Log-likelihoods by item, one line each.
std::vector<std::vector<double>> LikelihoodsIn(const std::string& path) {
  std::vector<std::vector<double>> all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    all.push_back(nlohmann::json::parse(line)["log_likelihoods"]
                      .get<std::vector<double>>());
  }
  return all;
}

TEST_F(EvalTest, ComparesChoicesHoweverTheWorkersShareThem) {
  Up(4);
  const int job = Submit({"checkpoint.directory=" + dir() + "/checkpoints"});
  ASSERT_EQ(Watch(job).code, 0);
  const std::string questions = dir() + "/questions.jsonl";
  std::ofstream out(questions);
  for (int i = 0; i < 30; ++i) {
    out << R"({"prompt": "the )" << std::string(i % 5, 'e')
        << R"(", "choices": [" cat", " dog", " i"], "answer": )" << i % 3
        << "}\n";
  }
  out.close();
  const std::string results = dir() + "/results.jsonl";
  std::vector<std::vector<double>> first;
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{
           {"parallelism.data=1"},
           {"parallelism.data=3"},
           {"parallelism.tensor=2", "parallelism.pipeline=2"},
           {"parallelism.data=2", "parallelism.zero=3"}}) {
    SCOPED_TRACE(settings.back());
    std::vector<std::string> words = {
        "eval", std::to_string(job), "--choices", questions, "--json", "--out",
        results};
    for (const std::string& setting : settings) {
      words.insert(words.end(), {"--set", setting});
    }
    const Outcome outcome = Troupe(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json json =
        nlohmann::json::parse(outcome.out, nullptr, false);
    EXPECT_EQ(json["items"], 30);
    EXPECT_EQ(json["windows"], 90);
    const std::vector<std::vector<double>> found = LikelihoodsIn(results);
    ASSERT_EQ(found.size(), 30u);
    if (first.empty()) first = found;
    for (size_t i = 0; i < found.size(); ++i) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(found[i].at(c), first[i].at(c), 1e-4) << i << " " << c;
      }
      // Of five prompts.
      EXPECT_NEAR(found[i][0], found[i % 5][0], 1e-4);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir())) {
    EXPECT_EQ(entry.path().string().find("questions.jsonl."), std::string::npos)
        << entry.path() << " is left";
  }

  // A record for fine-tuning with the same answer has the same loss.
  const std::string record = dir() + "/record.jsonl";
  std::ofstream(record) << R"({"prompt": "the ee", "completion": " dog"})"
                        << "\n";
  const std::string tokens = dir() + "/record.tokens";
  const Outcome prepared =
      RunProgram({kTroupe, "data", "prepare", record, "--completions",
                  "--sequence-length", "16", "--tokenizer", "bytes", "--out",
                  tokens});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  const Outcome alone =
      Troupe({"eval", std::to_string(job), "--tokens", tokens, "--json"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  const nlohmann::json loss = nlohmann::json::parse(alone.out, nullptr, false);
  EXPECT_EQ(loss["tokens"], 4);
  EXPECT_NEAR(loss["loss"].get<double>() * 4, -first[2][1], 1e-4);
}

}  // namespace
}  // namespace troupe
