#include "scheduler/cluster/generations.h"

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

GenerateRequest RequestOf(const std::string& checkpoint) {
  GenerateRequest request;
  request.set_checkpoint(checkpoint);
  request.set_prompt("In the beginning");
  request.set_max_new_tokens(4);
  request.set_ignore_eos(true);
  return request;
}

void Piece(Harness& h, WorkerId from, int64_t request, const std::string& text,
           bool done) {
  WorkerMessage message;
  message.mutable_generated()->set_request(request);
  message.mutable_generated()->set_text(text);
  message.mutable_generated()->set_done(done);
  h.Send(from, message);
}

// What the worker read of the checkpoint.
void Answer(Harness& h, WorkerId from, int64_t request, const JobSpec& job) {
  WorkerMessage message;
  message.mutable_checkpoint_job()->set_request(request);
  *message.mutable_checkpoint_job()->mutable_job() = job;
  h.Send(from, message);
}

// Has a worker alone write.
int64_t Writing(Harness& h, WorkerId worker) {
  const int64_t request =
      *h.cluster.Generate(RequestOf("/c"), h.now, h.actions);
  Answer(h, worker, request, JobSpec());
  return request;
}

TEST(Generations, RelaysThePiecesAndFreesTheWorker) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request =
      *h.cluster.Generate(RequestOf("/c"), h.now, h.actions);
  EXPECT_EQ(h.Sent(worker).back().read_job().checkpoint(), "/c");
  Answer(h, worker, request, JobSpec());
  const GenerateText text = h.Sent(worker).back().generate();
  EXPECT_EQ(text.checkpoint(), "/c");
  EXPECT_EQ(text.prompt(), "In the beginning");
  EXPECT_TRUE(text.ignore_eos());
  EXPECT_EQ(text.plan().weight_bytes_size(), 1);
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY);
  const auto busy = h.cluster.Generate(RequestOf("/c"), h.now, h.actions);
  EXPECT_TRUE(absl::IsUnavailable(busy.status())) << busy.status();
  Piece(h, worker, request, "a", false);
  Piece(h, worker, request, "b", true);
  const auto replies = h.All<GenerateReply>();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].response.text(), "a");
  EXPECT_FALSE(replies[0].done);
  EXPECT_TRUE(replies[1].done);
  EXPECT_TRUE(replies[1].status.ok());
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::IDLE);
  Piece(h, worker, request, "late", true);
  EXPECT_EQ(h.All<GenerateReply>().size(), 2u);
}

TEST(Generations, AQueuedJobStartsWhenTheTextIsWritten) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request = Writing(h, worker);
  const JobId job = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(job).state(), QUEUED);
  Piece(h, worker, request, "", true);
  EXPECT_EQ(h.status(job).state(), STARTING);
}

TEST(Generations, ALostWorkerEndsTheText) {
  Harness h;
  const WorkerId worker = h.Join("w");
  Writing(h, worker);
  h.Disconnect(worker, "connection closed");
  const auto replies = h.All<GenerateReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(replies[0].status));
  EXPECT_EQ(replies[0].status.message(),
            "w was lost while it wrote the text: connection closed");
}

TEST(Generations, AnAbandonedTextIsStoppedAndDropped) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request = Writing(h, worker);
  h.ClearActions();
  h.cluster.AbandonText(request, h.now, h.actions);
  h.cluster.AbandonText(request, h.now, h.actions);
  ASSERT_EQ(h.Sent(worker).size(), 1u);
  EXPECT_EQ(h.Sent(worker)[0].stop_text().request(), request);
  // It is not free before it says so.
  Piece(h, worker, request, "a", false);
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY);
  Piece(h, worker, request, "b", true);
  EXPECT_TRUE(h.All<GenerateReply>().empty());
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.worker(worker).text(), 0);
}

TEST(Generations, ACancelledTextEndsForBothSides) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request = Writing(h, worker);
  EXPECT_EQ(h.worker(worker).text(), request);
  EXPECT_EQ(h.worker(worker).reason(), "writes text 1");
  h.ClearActions();
  for (int i = 0; i < 2; ++i) {
    const auto of = h.cluster.CancelText(request, h.now, h.actions);
    ASSERT_TRUE(of.ok()) << of.status();
    EXPECT_EQ(*of, "w");
  }
  ASSERT_EQ(h.Sent(worker).size(), 1u);
  EXPECT_EQ(h.Sent(worker)[0].stop_text().request(), request);
  const auto replies = h.All<GenerateReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_TRUE(replies[0].done);
  EXPECT_EQ(replies[0].status, absl::AbortedError("text 1 was cancelled"));
  const JobId job = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(job).state(), QUEUED);
  Piece(h, worker, request, "", true);
  EXPECT_EQ(h.status(job).state(), STARTING);
  const auto gone = h.cluster.CancelText(request, h.now, h.actions);
  EXPECT_TRUE(absl::IsNotFound(gone.status())) << gone.status();
}

TEST(Generations, AWorkerThatDoesNotStopIsLost) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request = Writing(h, worker);
  h.cluster.AbandonText(request, h.now, h.actions);
  for (int second = 0; second < 30; ++second) {
    Piece(h, worker, request, "on and on", false);
    h.Pass(absl::Seconds(1), {worker});
  }
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY);
  h.Pass(absl::Seconds(1), {worker});
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.worker(worker).reason(), "did not stop text 1 within 30s");
}

// A large model is loaded, or a long prompt read.
TEST(Generations, APieceWithoutTextIsASignOfLife) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request = Writing(h, worker);
  for (int minute = 0; minute < 10; ++minute) {
    Piece(h, worker, request, "", false);
    h.Pass(absl::Minutes(1), {worker});
  }
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY);
}

TEST(Generations, ASilentWorkerIsLost) {
  Harness h;
  const WorkerId worker = h.Join("w");
  ASSERT_TRUE(h.cluster.Generate(RequestOf("/c"), h.now, h.actions).ok());
  h.Pass(absl::Seconds(121), {worker});
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.All<GenerateReply>().size(), 1u);
}

// The disk of the worker that reads the checkpoint does not answer.
TEST(Generations, ASilentReaderIsLost) {
  Harness h;
  const WorkerId worker = h.Join("w");
  ASSERT_TRUE(h.cluster.Generate(RequestOf("/c"), h.now, h.actions).ok());
  h.Pass(absl::Seconds(121), {worker});
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.All<GenerateReply>().size(), 1u);
}

TEST(Generations, ACheckpointThatCannotBeReadIsTheAnswer) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request =
      *h.cluster.Generate(RequestOf("/c"), h.now, h.actions);
  WorkerMessage message;
  message.mutable_checkpoint_job()->set_request(request);
  message.mutable_checkpoint_job()->set_error("checkpoint /c: no manifest");
  h.Send(worker, message);
  const auto replies = h.All<GenerateReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].status,
            absl::FailedPreconditionError(
                "w: checkpoint /c: no manifest; all workers must see the "
                "checkpoint at this path"));
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::IDLE);
}

TEST(Generations, ATextThatIsAbandonedWhileItsCheckpointIsReadIsNotBegun) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const int64_t request =
      *h.cluster.Generate(RequestOf("/c"), h.now, h.actions);
  h.cluster.AbandonText(request, h.now, h.actions);
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY);
  h.ClearActions();
  Answer(h, worker, request, JobSpec());
  EXPECT_TRUE(h.Sent(worker).empty());
  EXPECT_TRUE(h.All<GenerateReply>().empty());
  EXPECT_EQ(h.worker(worker).state(), WorkerStatus::IDLE);
}

TEST(Generations, RefusesNonsense) {
  Harness h;
  h.Join("w");
  const auto code = [&](auto change) {
    GenerateRequest request = RequestOf("/c");
    change(request);
    return h.cluster.Generate(request, h.now, h.actions).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](auto& r) { r.set_max_new_tokens(0); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_max_new_tokens((1 << 16) + 1); }),
            invalid);
  EXPECT_EQ(code([](auto& r) { r.set_temperature(-1); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_temperature(std::nan("")); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_top_k(-1); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_tensor(0); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_pipeline((1 << 14) + 1); }), invalid);
  EXPECT_EQ(code([](auto& r) { r.set_prompt(std::string(2 << 20, 'x')); }),
            invalid);
  EXPECT_EQ(code([](auto& r) { r.clear_checkpoint(); }), invalid);
  EXPECT_EQ(code([](auto& r) {
              r.clear_checkpoint();
              r.set_job(5);
            }),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
