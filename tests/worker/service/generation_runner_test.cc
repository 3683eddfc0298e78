#include "worker/service/generation_runner.h"

#include <filesystem>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/text_plan_of.h"
#include "tests/worker/service/small_worker.h"
#include "worker/service/job_reader.h"

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
  *request.mutable_plan() = TextPlanOf(checkpoint);
  return request;
}

TEST(GenerationRunner, SendsPiecesAndSaysWhenItIsDone) {
  SmallWorker worker;
  absl::Mutex mutex;
  std::vector<GeneratedText> sent;
  GenerationRunner runner(
      Request(Checkpoint(), 9),
      {.resources = worker.resources(), .send = [&](WorkerMessage message) {
         absl::MutexLock lock(&mutex);
         sent.push_back(message.generated());
         return absl::OkStatus();
       }});
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
  GenerationRunner runner(
      Request(Checkpoint(), 1 << 30),
      {.resources = worker.resources(), .send = [&](WorkerMessage message) {
         absl::MutexLock lock(&mutex);
         tokens += message.generated().tokens();
         if (message.generated().done()) {
           last.push_back(message.generated());
         }
         return absl::OkStatus();
       }});
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
  EXPECT_TRUE(last[0].stopped());
}

// The first of two ranks, and the other never comes.
TEST(GenerationRunner, AWaitForOthersEndsWhenItIsStopped) {
  const std::string checkpoint = Checkpoint();
  GenerateText request = Request(checkpoint, 9);
  *request.mutable_plan() = TextPlanOf(checkpoint, {.pipeline = 2});
  for (Group& group : *request.mutable_plan()->mutable_groups()) {
    group.mutable_carriers(0)->set_backend("gloo");
  }
  SmallWorker worker;
  absl::Mutex mutex;
  bool asked = false;
  std::vector<GeneratedText> sent;
  GenerationRunner runner(
      request, {.resources = worker.resources(),
                .send =
                    [&](WorkerMessage message) {
                      absl::MutexLock lock(&mutex);
                      asked |= message.store_get().ref().text() == 11;
                      if (message.has_generated()) {
                        sent.push_back(message.generated());
                      }
                      return absl::OkStatus();
                    },
                .address = "127.0.0.1"});
  {
    absl::MutexLock lock(&mutex);
    ASSERT_TRUE(
        mutex.AwaitWithTimeout(absl::Condition(&asked), absl::Seconds(20)));
  }
  StopText stop;
  stop.set_request(11);
  stop.set_reason("w1 was lost");
  runner.Stop(stop);
  absl::MutexLock lock(&mutex);
  const auto ended = [&] { return !sent.empty(); };
  ASSERT_TRUE(
      mutex.AwaitWithTimeout(absl::Condition(&ended), absl::Seconds(20)));
  EXPECT_TRUE(sent[0].done());
  EXPECT_TRUE(sent[0].stopped());
  EXPECT_EQ(sent[0].error(), "w1 was lost");
  EXPECT_FALSE(sent[0].has_missing_rank());
}

TEST(JobReader, SaysByWhichJobACheckpointWasMade) {
  std::vector<CheckpointJob> read;
  const auto ask = [&](const std::string& checkpoint) {
    ReadCheckpointJob request;
    request.set_request(7);
    request.set_checkpoint(checkpoint);
    JobReader(request, [&](WorkerMessage message) {
      read.push_back(message.checkpoint_job());
      return absl::OkStatus();
    });
  };
  ask(Checkpoint());
  ask("/no/such/checkpoint");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].request(), 7);
  EXPECT_EQ(read[0].error(), "");
  EXPECT_EQ(read[0].job().model().vocab_size(),
            SmallJob().model().vocab_size());
  EXPECT_EQ(read[1].request(), 7);
  EXPECT_NE(read[1].error().find("/no/such/checkpoint"), std::string::npos);
}

TEST(GenerationRunner, DestructionEndsIt) {
  const std::string checkpoint = Checkpoint();
  SmallWorker worker;
  absl::Mutex mutex;
  int pieces = 0;
  bool done = false;
  {
    GenerationRunner runner(
        Request(checkpoint, 1 << 30),
        {.resources = worker.resources(), .send = [&](WorkerMessage message) {
           absl::MutexLock lock(&mutex);
           ++pieces;
           done = message.generated().done();
           return absl::OkStatus();
         }});
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
