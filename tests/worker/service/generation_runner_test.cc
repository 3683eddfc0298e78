#include "worker/service/generation_runner.h"

#include <filesystem>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/service/small_worker.h"

namespace troupe {
namespace {

std::string Checkpoint() {
  JobSpec job = SmallJob();
  const std::string directory = testing::TempDir() + "/generation_runner";
  std::filesystem::remove_all(directory);
  job.mutable_training()->set_steps(4);
  job.mutable_checkpoint()->set_directory(directory);
  EXPECT_TRUE(Train(job, {}).status().ok());
  return CheckpointPath(directory, 4);
}

GenerateText Request(const std::string& checkpoint, int tokens) {
  GenerateText request;
  request.set_request(11);
  request.set_checkpoint(checkpoint);
  request.set_prompt("0123");
  request.set_max_new_tokens(tokens);
  request.set_temperature(1.0);
  return request;
}

TEST(GenerationRunner, SendsPiecesAndSaysWhenItIsDone) {
  SmallWorker worker;
  absl::Mutex mutex;
  std::vector<GeneratedText> sent;
  GenerationRunner runner(Request(Checkpoint(), 9), worker.resources(),
                          [&](WorkerMessage message) {
                            absl::MutexLock lock(&mutex);
                            sent.push_back(message.generated());
                            return absl::OkStatus();
                          });
  absl::MutexLock lock(&mutex);
  const auto done = [&] { return !sent.empty() && sent.back().done(); };
  ASSERT_TRUE(
      mutex.AwaitWithTimeout(absl::Condition(&done), absl::Seconds(20)));
  EXPECT_EQ(sent.back().error(), "");
  int tokens = 0;
  for (const GeneratedText& piece : sent) {
    EXPECT_EQ(piece.request(), 11);
    EXPECT_EQ(piece.tokens(), piece.ids_size());
    tokens += piece.tokens();
  }
  EXPECT_EQ(tokens, 9);
}

TEST(GenerationRunner, AStoppedTextEndsAndSaysSo) {
  SmallWorker worker;
  absl::Mutex mutex;
  int tokens = 0;
  std::vector<GeneratedText> last;
  GenerationRunner runner(Request(Checkpoint(), 1 << 30), worker.resources(),
                          [&](WorkerMessage message) {
                            absl::MutexLock lock(&mutex);
                            tokens += message.generated().tokens();
                            if (message.generated().done()) {
                              last.push_back(message.generated());
                            }
                            return absl::OkStatus();
                          });
  const auto await = [&](auto reached) {
    absl::MutexLock lock(&mutex);
    return mutex.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(20));
  };
  ASSERT_TRUE(await([&] { return tokens >= 1; }));
  StopText stop;
  stop.set_request(10);  // another one
  runner.Stop(stop);
  ASSERT_TRUE(await([&] { return tokens >= 30; }));
  stop.set_request(11);
  stop.set_reason("nobody reads it");
  runner.Stop(stop);
  ASSERT_TRUE(await([&] { return !last.empty(); }));
  EXPECT_EQ(last[0].request(), 11);
  EXPECT_EQ(last[0].error(), "nobody reads it");
}

TEST(GenerationRunner, DestructionEndsIt) {
  const std::string checkpoint = Checkpoint();
  SmallWorker worker;
  absl::Mutex mutex;
  int pieces = 0;
  bool done = false;
  {
    GenerationRunner runner(Request(checkpoint, 1 << 30), worker.resources(),
                            [&](WorkerMessage message) {
                              absl::MutexLock lock(&mutex);
                              ++pieces;
                              done = message.generated().done();
                              return absl::OkStatus();
                            });
    absl::MutexLock lock(&mutex);
    const auto begun = [&] { return pieces >= 3; };
    ASSERT_TRUE(
        mutex.AwaitWithTimeout(absl::Condition(&begun), absl::Seconds(20)));
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(worker.arenas().used(), 0u);
}

}  // namespace
}  // namespace troupe
