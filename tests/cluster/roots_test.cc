// Workers with roots: jobs read and write below them, and nowhere else.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RootsTest : public ClusterTestBase {
 protected:
  RootsTest() {
    fs::create_directory(dir() + "/root");
    fs::create_directory(dir() + "/out");
    fs::rename(dir() + "/tiny.tokens", dir() + "/root/tiny.tokens");
    fs::copy(dir() + "/root/tiny.tokens", dir() + "/out/tiny.tokens");
  }

  // No job comes of it.
  void ExpectRefused(const std::vector<std::string>& settings,
                     const std::string& why) {
    const Outcome refused = Troupe(SubmitCommand(settings));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
};

TEST_F(RootsTest, JobsStayBelowThem) {
  Up(2, {"--root", "data=" + dir() + "/root"});
  const std::string tokens = "data.tokens=data:tiny.tokens";
  const int job = Submit(
      {tokens, "checkpoint.directory=data:runs/a", "training.stop_after=2"});
  const Outcome watched = Watch(job);
  ASSERT_EQ(watched.code, 0) << watched.err;
  const std::string checkpoint = Describe(job)["checkpoints"][0]["path"];
  EXPECT_EQ(checkpoint, "data:runs/a/step-00000002");
  EXPECT_TRUE(fs::exists(dir() + "/root/runs/a/step-00000002"));
  // What saved can be gone on from, written with and exported.
  EXPECT_EQ(Watch(Submit({tokens, "checkpoint.directory=data:runs/a",
                          "checkpoint.resume=latest"}))
                .code,
            0);
  const Outcome text = Troupe(
      {"generate", "latest", "--prompt", "line", "--max-new-tokens", "3"});
  EXPECT_EQ(text.code, 0) << text.err;
  const std::vector<std::string> export_words = {
      "export", "--checkpoint", checkpoint, "--to", dir() + "/hf"};
  Outcome exported = Troupe(export_words);
  EXPECT_EQ(exported.code, 1);
  EXPECT_THAT(exported.err, HasSubstr("--root data=DIR"));
  std::vector<std::string> words = export_words;
  words.insert(words.end(), {"--root", "data=" + dir() + "/root"});
  exported = Troupe(words);
  EXPECT_EQ(exported.code, 0) << exported.err;

  // A model of Hugging Face's, whose sizes the client reads.
  fs::rename(dir() + "/hf", dir() + "/root/hf");
  words = SubmitCommand({"model=null", "model.hf=data:hf", tokens});
  words.insert(words.end(), {"--watch", "--root", "data=" + dir() + "/root"});
  const Outcome trained = Troupe(words);
  EXPECT_EQ(trained.code, 0) << trained.err;

  // Everything else is refused, by name or by a link in the root.
  fs::create_symlink(dir() + "/out", dir() + "/root/link");
  ExpectRefused({"data.tokens=" + dir() + "/out/tiny.tokens"},
                "is not below a root of this worker (data)");
  ExpectRefused({"data.tokens=data:link/tiny.tokens"}, "leads out of its root");
  ExpectRefused({"data.tokens=data:../out/tiny.tokens"},
                "leads out of its root");
  ExpectRefused({"data.tokens=other:tiny.tokens"}, "has no root other");
  ExpectRefused({tokens, "checkpoint.directory=" + dir() + "/out/runs"},
                "checkpoint.directory");
  ExpectRefused({tokens, "checkpoint.directory=data:link/runs"},
                "leads out of its root");
  ExpectRefused({tokens, "checkpoint.resume=" + dir() + "/out"},
                "checkpoint.resume");
  const Outcome read =
      Troupe({"generate", "--checkpoint", dir() + "/out", "--prompt", "line"});
  EXPECT_EQ(read.code, 1);
  EXPECT_THAT(read.err, HasSubstr("is not below a root"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir() + "/out"), {}), 1);
}

TEST_F(RootsTest, WithoutThemWorkersSaySo) {
  Up(1);
  std::stringstream log;
  log << std::ifstream(dir() + "/logs/worker-0.log").rdbuf();
  EXPECT_THAT(log.str(), HasSubstr("no --root: the jobs of every client"));
  ExpectRefused({"parallelism.data=1", "data.tokens=data:tiny.tokens"},
                "this worker has none");
  // Workers of another kind beside those that are there are refused.
  const Outcome up = Troupe({"up", "--workers", "2", "--threads", kThreads,
                             "--root", "data=" + dir() + "/root"});
  EXPECT_EQ(up.code, 1);
  EXPECT_THAT(up.err, HasSubstr("leave out the flags that say another thing"));
}

}  // namespace
}  // namespace troupe
