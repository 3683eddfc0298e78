// What users, disks and strangers get wrong, with real daemons: each is told
// clearly, and afterwards the cluster is as clean as before.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A file system of 300 KiB, where the test may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    fs::create_directory(path);
    mounted_ = mount("none", path.c_str(), "tmpfs", 0, "size=300k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }

  // Somebody makes room.
  void Grow() {
    EXPECT_EQ(mount("none", path_.c_str(), "tmpfs", MS_REMOUNT, "size=4m"), 0)
        << strerror(errno);
  }

  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

class BadInputTest : public ClusterTestBase {
 protected:
  // All workers idle, nothing running or waiting, and the next job succeeds.
  void ExpectClean() {
    const json jobs = json::parse(Troupe({"jobs", "--json"}).out);
    if (jobs.contains("jobs")) {
      for (const json& job : jobs["jobs"]) {
        EXPECT_THAT(job["state"], testing::AnyOf("SUCCEEDED", "FAILED")) << job;
      }
    }
    EXPECT_EQ(Watch(Submit()).code, 0);
    const json workers = json::parse(Troupe({"workers", "--json"}).out);
    ASSERT_EQ(workers["workers"].size(), 2);
    for (const json& worker : workers["workers"]) {
      EXPECT_EQ(worker["state"], "IDLE") << worker;
    }
  }

  // The job with these fields is taken, and then fails for a reason that holds
  // all these parts.
  void ExpectFails(const std::vector<std::string>& settings,
                   const std::vector<std::string>& parts) {
    const int job = Submit(settings);
    const Outcome watched = Watch(job);
    EXPECT_EQ(watched.code, 1);
    EXPECT_EQ(Describe(job)["state"], "FAILED");
    for (const std::string& part : parts) {
      EXPECT_THAT(watched.err, HasSubstr(part));
    }
  }

  // No job comes of it, for a reason that holds all these parts.
  void ExpectRefused(const std::vector<std::string>& settings,
                     const std::vector<std::string>& parts) {
    const Outcome refused = Troupe(SubmitCommand(settings));
    EXPECT_EQ(refused.code, 1) << settings[0];
    for (const std::string& part : parts) {
      EXPECT_THAT(refused.err, HasSubstr(part));
    }
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = dir() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  static std::string Read(const std::string& path) {
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }

  // Trains with a checkpoint, whose directory it returns.
  std::string SaveCheckpoint() {
    const int job = Submit({"checkpoint.directory=" + dir() + "/saved"});
    EXPECT_EQ(Watch(job).code, 0);
    return Describe(job)["checkpoints"][0]["path"];
  }
};

TEST_F(BadInputTest, FieldsThatMakeNoSenseAreRefusedByName) {
  Up(2);
  struct Row {
    std::string setting;
    std::vector<std::string> parts;
  };
  const Row rows[] = {
      {"training.stepz=3", {"no such field", "did you mean", "steps"}},
      {"training.steps=many", {"expected an integer", "many"}},
      {"training.steps=3.5", {"expected an integer", "3.5"}},
      {"training.steps=0", {"0 is out of range"}},
      {"training.steps=-4", {"-4 is out of range"}},
      {"training.steps=99999999999999999999", {"expected an integer up to"}},
      {"training.steps={}", {"expected an integer"}},
      {"training.global_batch_size=2147483647", {"out of range"}},
      {"optimizer.lr=.nan", {"expected a", "number"}},
      {"optimizer.lr=nan", {"finite number"}},
      {"optimizer.lr=1e999", {"finite number"}},
      {"optimizer.lr=-1", {"-1 is out of range"}},
      {"optimizer.betas=[0.9]", {"1 numbers; use two"}},
      {"model.hidden_size=1000000000", {"out of range"}},
      {"model.num_attention_heads=3", {"does not divide", "32", "use"}},
      {"model.architecture=gpt3", {"gpt2"}},
      {"training.micro_batch_size=3", {"3 does not divide", "8"}},
      {"parallelism.data=3", {"3 does not divide", "8"}},
      {"training.sequence_length=17", {"17", "16"}},
      {"data.tokens=", {"no value"}},
  };
  for (const Row& row : rows) {
    const Outcome refused = Troupe(SubmitCommand({row.setting}));
    EXPECT_EQ(refused.code, 1) << row.setting;
    const std::string field = row.setting.substr(0, row.setting.find('='));
    EXPECT_THAT(refused.err, HasSubstr(field));
    for (const std::string& part : row.parts) {
      EXPECT_THAT(refused.err, HasSubstr(part)) << row.setting;
    }
  }
  EXPECT_EQ(Submit(), 1) << "none of them became a job";
  ASSERT_EQ(Watch(1).code, 0);
  ExpectClean();
}

TEST_F(BadInputTest, FilesThatAreNoJobsAreRefusedWithThePlace) {
  Up(2);
  const std::string tiny = Read(dir() + "/tiny.yaml");
  struct Row {
    std::string text;
    std::vector<std::string> parts;
  };
  const Row rows[] = {
      {tiny + "name: again\n", {"bad.yaml:9:1", "name is there twice"}},
      {tiny + "checkpoints: {}\n", {"bad.yaml:9:1", "mean checkpoint?"}},
      {tiny + "checkpoint: 3\n", {"bad.yaml:9:13", "expected fields"}},
      {tiny + "checkpoint: {every: [1]}\n", {"bad.yaml:9:21", "a list"}},
      {"name: [unclosed\n", {"bad.yaml:", "not YAML"}},
      {"name: \"\xff\"\n", {"bad.yaml:1:8", "not UTF-8"}},
      {"", {"empty"}},
  };
  for (const Row& row : rows) {
    const Outcome refused = Troupe({"submit", Write("bad.yaml", row.text)});
    EXPECT_EQ(refused.code, 1) << row.text;
    for (const std::string& part : row.parts) {
      EXPECT_THAT(refused.err, HasSubstr(part)) << row.text;
    }
  }
  EXPECT_THAT(Troupe({"submit", dir() + "/absent.yaml"}).err,
              AllOf(HasSubstr("absent.yaml"), HasSubstr("is it there?")));
  ExpectClean();
}

TEST_F(BadInputTest, DataThatIsNotThereOrNoTokensIsRefused) {
  Up(2);
  ExpectRefused({"data.tokens=" + dir() + "/absent.tokens"},
                {"data.tokens: ", "absent.tokens"});
  ExpectRefused({"data.tokens=" + dir()}, {dir()});
  ExpectRefused({"data.tokens=" + dir() + "/tiny.txt"}, {"tiny.txt"});
  const std::string tokens = Read(dir() + "/tiny.tokens");
  ExpectRefused({"data.tokens=" +
                 Write("torn.tokens", tokens.substr(0, tokens.size() - 1))},
                {"torn.tokens", "truncated"});
  ExpectRefused({"training.sequence_length=16", "model.vocab_size=100"},
                {"tiny.tokens", "100"});
  ExpectClean();
}

TEST_F(BadInputTest, ACheckpointThatIsDamagedOrAbsentNamesTheFile) {
  Up(2);
  ExpectRefused({"checkpoint.resume=" + dir() + "/absent"}, {"/absent"});
  ExpectRefused({"checkpoint.resume=" + dir()}, {dir()});
  const std::string saved = SaveCheckpoint();
  const std::string resume = "checkpoint.resume=" + saved;
  const std::string shard = saved + "/rank-00001.safetensors";
  const std::string whole = Read(shard);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 4;
  std::ofstream(shard, std::ios::binary) << flipped;
  ExpectFails({resume, "training.steps=6"}, {shard, "CRC-32C"});
  fs::resize_file(shard, whole.size() / 2);
  ExpectRefused({resume, "training.steps=6"}, {shard, "is not whole"});
  fs::remove(shard);
  ExpectRefused({resume, "training.steps=6"}, {shard, "is not whole"});
  std::ofstream(shard, std::ios::binary) << whole;
  ExpectRefused({resume, "training.steps=6", "model.hidden_size=64"},
                {saved, "transformer."});
  EXPECT_EQ(Watch(Submit({resume, "training.steps=6"})).code, 0)
      << "it was sound before";
  ExpectClean();
}

TEST_F(BadInputTest, ATokenFileThatShrinksEndsTheJobAndNoWorker) {
  Up(2);
  const std::string tokens = Write("own.tokens", Read(dir() + "/tiny.tokens"));
  const pid_t worker = WorkerPid("worker-0");
  const int job = Submit({"data.tokens=" + tokens, kEndless});
  TroupeProgram watch(Command({"watch", std::to_string(job)}));
  ASSERT_NE(watch.WaitForLine("step 3/"), "");
  fs::resize_file(tokens, 100);
  EXPECT_EQ(watch.Wait().code, 1);
  EXPECT_THAT(std::string(Describe(job)["reason"]),
              AllOf(HasSubstr(tokens), HasSubstr("put the file back")));
  ExpectClean();
  EXPECT_EQ(WorkerPid("worker-0"), worker) << "the same process";
}

TEST_F(BadInputTest, ACheckpointDirectoryThatCannotBeMadeIsRefused) {
  Up(2);
  const std::string below_a_file = dir() + "/tiny.txt/checkpoints";
  ExpectRefused({"checkpoint.directory=" + below_a_file, kEndless},
                {"checkpoint.directory: ", below_a_file});
  ExpectClean();
}

// The last checkpoint is tried again, from memory, until there is room for it.
TEST_F(BadInputTest, AFullDiskCostsNoJobAndLeavesNoHalfCheckpoint) {
  SmallDisk disk(dir() + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount: " << strerror(errno);
  Up(2);
  // Two blocks of width 32 with AdamW's moments are 430 KB.
  const int job = Submit({"checkpoint.directory=" + disk.path()});
  TroupeProgram watch(Command({"watch", std::to_string(job)}));
  EXPECT_THAT(watch.WaitForLine("could not be written"),
              AllOf(HasSubstr(disk.path()), HasSubstr("file system is full")));
  EXPECT_THAT(std::string(Describe(job)["unsaved"]), HasSubstr(disk.path()));
  for (const auto& entry : fs::directory_iterator(disk.path())) {
    EXPECT_THAT(entry.path().filename().string(),
                testing::AnyOf(HasSubstr(".tmp-"), HasSubstr(".lock"),
                               HasSubstr("metrics.")))
        << "no complete name";
  }
  disk.Grow();
  EXPECT_EQ(watch.Wait().code, 0);
  const json saved = Describe(job);
  EXPECT_EQ(saved["state"], "SUCCEEDED");
  EXPECT_FALSE(saved.contains("unsaved") && saved["unsaved"] != "") << saved;
  ASSERT_EQ(saved["checkpoints"].size(), 1);
  EXPECT_TRUE(fs::exists(saved["checkpoints"][0]["path"].get<std::string>()));
  ExpectClean();
}

}  // namespace
}  // namespace troupe
