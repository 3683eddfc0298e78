// Texts that several daemons write together, and what becomes of them.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

class GenerateTest : public ClusterTestBase {
 protected:
  static std::vector<std::string> TwoByTwo() {
    return {"parallelism.data=1", "parallelism.tensor=2",
            "parallelism.pipeline=2"};
  }

  // Trains the tiny model so; its last checkpoint.
  std::string Train() {
    std::vector<std::string> settings = TwoByTwo();
    settings.push_back("checkpoint.directory=" + dir() + "/checkpoints");
    const int job = Submit(settings);
    EXPECT_EQ(Watch(job).code, 0);
    return Describe(job)["checkpoints"][0]["path"];
  }

  Outcome Generate(const std::string& checkpoint,
                   const std::vector<std::string>& more = {}) const {
    // Past the model's 16 positions. At this temperature small differences of
    // logits would tell.
    std::vector<std::string> words = {
        "generate", "--checkpoint",     checkpoint, "--prompt",
        "line",     "--max-new-tokens", "20",       "--temperature",
        "1",        "--top-k",          "0",        "--seed",
        "3"};
    words.insert(words.end(), more.begin(), more.end());
    return Troupe(words);
  }

  // A text that goes on until someone ends it, of which a line has been
  // written.
  std::unique_ptr<TroupeProgram> Endless(const std::string& checkpoint,
                                         const std::vector<std::string>& more) {
    // No message has the prompt's word, as "pipeline 2" has "line".
    std::vector<std::string> words = {
        "generate", "--checkpoint",     checkpoint, "--prompt",
        "zebra",    "--top-k",          "0",        "--seed",
        "3",        "--max-new-tokens", "65536",    "--temperature",
        "1"};
    words.insert(words.end(), more.begin(), more.end());
    auto text = std::make_unique<TroupeProgram>(Command(words));
    EXPECT_NE(text->WaitForLine("zebra"), "");
    return text;
  }
};

TEST_F(GenerateTest, OverAnyWorkersItIsTheTextOfOne) {
  Up(4);
  const std::string checkpoint = Train();
  const Outcome one = Generate(checkpoint);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_GT(one.out.size(), 20u);
  for (const std::vector<std::string>& cut :
       std::vector<std::vector<std::string>>{
           {"--tensor", "2", "--pipeline", "2"},
           {"--pipeline", "3"},
           {"--tensor", "2"}}) {
    const Outcome several = Generate(checkpoint, cut);
    EXPECT_EQ(several.code, 0) << several.err;
    EXPECT_EQ(several.out, one.out);
  }
  const Outcome too_many = Generate(checkpoint, {"--tensor", "3"});
  EXPECT_EQ(too_many.code, 1);
  EXPECT_NE(too_many.err.find("parallelism.tensor: 3 ranks cannot share 2"),
            std::string::npos)
      << too_many.err;
}

// Its weights are 134 KiB.
TEST_F(GenerateTest, AModelThatFitsNoWorkerIsCutAsItWasTrained) {
  Up(4);
  const std::string checkpoint = Train();
  const std::string text = Generate(checkpoint).out;
  ASSERT_EQ(Troupe({"down"}).code, 0);
  Up(4, {"--device-memory", "100KiB"});
  const Outcome whole =
      Generate(checkpoint, {"--tensor", "1", "--pipeline", "1"});
  EXPECT_EQ(whole.code, 1);
  EXPECT_NE(whole.err.find("takes one idle worker, with 134 KiB of memory"),
            std::string::npos)
      << whole.err;
  const Outcome cut = Generate(checkpoint);
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(cut.out, text);

  const auto endless = Endless(checkpoint, {});
  const Outcome busy = Generate(checkpoint);
  EXPECT_EQ(busy.code, 1);
  EXPECT_NE(busy.err.find("no worker is idle, all 4 are busy"),
            std::string::npos)
      << busy.err;
  Kill("worker-2");
  const Outcome ended = endless->Wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("worker-2 was lost while it wrote the text"),
            std::string::npos)
      << ended.err;
  const Outcome too_few = Generate(checkpoint);
  EXPECT_EQ(too_few.code, 1);
  EXPECT_NE(too_few.err.find("takes 4 idle workers"), std::string::npos)
      << too_few.err;
}

// By Ctrl-C, and by somebody else.
TEST_F(GenerateTest, ATextThatIsEndedFreesAllItsWorkers) {
  Up(4);
  const std::string checkpoint = Train();
  const std::vector<std::string> over_four = {"--tensor", "2", "--pipeline",
                                              "2"};
  const auto interrupted = Endless(checkpoint, over_four);
  interrupted->Signal(SIGINT);
  interrupted->Wait();
  EXPECT_EQ(Watch(Submit(TwoByTwo())).code, 0);

  const auto cancelled = Endless(checkpoint, over_four);
  const Outcome cancel = Troupe({"cancel", "--text", "2"});
  EXPECT_EQ(cancel.code, 0) << cancel.err;
  EXPECT_NE(cancel.out.find("worker-3 are told to stop"), std::string::npos)
      << cancel.out;
  EXPECT_EQ(cancelled->Wait().code, 1);
  EXPECT_EQ(Watch(Submit(TwoByTwo())).code, 0);
}

}  // namespace
}  // namespace troupe
