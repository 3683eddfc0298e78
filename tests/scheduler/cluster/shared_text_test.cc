// Texts that several workers write: which do, and what becomes of the others
// when one of them fails.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/generations.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

using testing::HasSubstr;

GenerateRequest Request() {
  GenerateRequest request;
  request.set_checkpoint("/c");
  request.set_prompt("In the beginning");
  request.set_max_new_tokens(4);
  return request;
}

// A model of `bytes` bytes, trained over tensor 2 x pipeline 2.
JobSpec Trained(int bytes) {
  JobSpec job;
  job.mutable_model()->set_hidden_size(bytes);
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_pipeline(2);
  return job;
}

// Workers have 1000 bytes each.
constexpr int kSmall = 1000;
constexpr int kLarge = 4000;

class SharedText : public testing::Test {
 protected:
  // Asks, and answers what the checkpoint's job is.
  int64_t Ask(const JobSpec& trained, const GenerateRequest& request) {
    const absl::StatusOr<int64_t> text =
        h().cluster.Generate(request, h().now, h().actions);
    CHECK_OK(text.status());
    WorkerMessage message;
    message.mutable_checkpoint_job()->set_request(*text);
    *message.mutable_checkpoint_job()->mutable_job() = trained;
    message.mutable_checkpoint_job()->set_made("yesterday");
    for (const auto& [id, worker] : h().cluster.workers().all()) {
      if (worker.status.text() == *text) {
        h().Send(id, message);
        break;
      }
    }
    return *text;
  }

  // Four workers that write one text.
  int64_t Begin() {
    ids_ = h().JoinMany(4);
    const int64_t text = Ask(Trained(kLarge), Request());
    h().ClearActions();
    return text;
  }

  void Say(int rank, const GeneratedText& piece) {
    WorkerMessage message;
    *message.mutable_generated() = piece;
    h().Send(ids_[rank], message);
  }
  static GeneratedText PieceOf(int64_t text) {
    GeneratedText piece;
    piece.set_request(text);
    return piece;
  }
  void End(int rank, int64_t text, const std::string& error = "",
           int missing_rank = -1, bool stopped = false) {
    GeneratedText piece = PieceOf(text);
    piece.set_done(true);
    piece.set_error(error);
    piece.set_stopped(stopped);
    if (missing_rank >= 0) piece.set_missing_rank(missing_rank);
    Say(rank, piece);
  }
  void Loaded(int rank, int64_t text) {
    GeneratedText piece = PieceOf(text);
    piece.set_loaded(true);
    Say(rank, piece);
  }

  bool WasTold(int rank) const {
    for (const SchedulerMessage& message : h().Sent(ids_[rank])) {
      if (message.has_stop_text()) return true;
    }
    return false;
  }
  WorkerStatus::State StateOf(int rank) const {
    return h().worker(ids_[rank]).state();
  }
  absl::Status Refusal() const {
    const auto replies = h().All<GenerateReply>();
    return replies.size() == 1 && replies[0].done
               ? replies[0].status
               : absl::InternalError("not one answer");
  }
  int Ends() const {
    int ends = 0;
    for (const GenerateReply& reply : h().All<GenerateReply>()) {
      ends += reply.done;
    }
    return ends;
  }

  // A new one, in place of what was.
  void Afresh() { harness_ = std::make_unique<Harness>(); }
  Harness& h() const { return *harness_; }

  std::unique_ptr<Harness> harness_ = std::make_unique<Harness>();
  std::vector<WorkerId> ids_;
};

TEST_F(SharedText, AModelThatFitsOneWorkerIsWrittenByTheOneThatRead) {
  ids_ = h().JoinMany(4);
  Ask(Trained(kSmall), Request());
  EXPECT_EQ(h().Sent(ids_[0]).back().generate().plan().weight_bytes_size(), 1);
  for (int rank : {1, 2, 3}) EXPECT_EQ(StateOf(rank), WorkerStatus::IDLE);
}

TEST_F(SharedText, OrByAnotherThatHasMoreMemory) {
  h().Join("small");
  Register large = RegisterOf("large");
  large.mutable_worker()->mutable_budgets(0)->set_bytes(kLarge);
  const WorkerId id = *h().cluster.RegisterWorker(large, h().now, h().actions);
  Ask(Trained(kLarge), Request());
  EXPECT_EQ(h().Sent(id).back().generate().plan().weight_bytes_size(), 1);
  EXPECT_EQ(h().cluster.workers().idle_count(), 1);
}

TEST_F(SharedText, OneThatFitsNoneIsCutAsItWasTrained) {
  ids_ = h().JoinMany(5);
  const int64_t text = Ask(Trained(kLarge), Request());
  for (int rank = 0; rank < 4; ++rank) {
    const GenerateText message = h().Sent(ids_[rank]).back().generate();
    EXPECT_EQ(message.request(), text);
    EXPECT_EQ(message.rank(), rank);
    EXPECT_EQ(message.checkpoint(), "/c");
    EXPECT_EQ(message.made(), "yesterday");
    EXPECT_EQ(message.plan().weight_bytes_size(), 4);
    EXPECT_EQ(message.plan().groups(0).carriers(0).backend(), "of 4 from w0");
    EXPECT_EQ(h().worker(ids_[rank]).text(), text);
    EXPECT_LT(message.collective_seconds_max(),
              absl::ToDoubleSeconds(Limits().generate_max));
  }
  EXPECT_EQ(StateOf(4), WorkerStatus::IDLE);
}

// Of as many of its ranks as it goes over in one dimension.
TEST_F(SharedText, OneThatWasCutInThreeDimensionsIsCutInOne) {
  ids_ = h().JoinMany(6);
  JobSpec trained = Trained(kLarge);
  trained.mutable_parallelism()->set_pipeline(1);
  trained.mutable_parallelism()->set_tensor(27);  // more than there are heads
  trained.mutable_parallelism()->set_tensor_method("3d");
  trained.mutable_model()->set_num_attention_heads(9);
  Ask(trained, Request());
  EXPECT_THAT(std::string(Refusal().message()),
              HasSubstr("cut in one dimension, the text takes 9 idle workers"));
  h().ClearActions();
  trained.mutable_model()->set_num_attention_heads(3);
  Ask(trained, Request());
  EXPECT_THAT(std::string(Refusal().message()),
              HasSubstr("takes 3 idle workers of one kind, tensor 3 x pipeline "
                        "1, with 1.30 KiB of memory each, and 6 of 6 are "
                        "idle, 0 of these with that much"));
  h().ClearActions();
  trained.mutable_model()->set_hidden_size(2 * kSmall);
  Ask(trained, Request());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(h().Sent(ids_[rank]).back().generate().plan().weight_bytes_size(),
              3);
  }
}

TEST_F(SharedText, WhoeverAsksSaysOtherwise) {
  ids_ = h().JoinMany(3);
  GenerateRequest request = Request();
  request.set_pipeline(3);
  Ask(Trained(kSmall), request);
  const GenerateText message = h().Sent(ids_[2]).back().generate();
  EXPECT_EQ(message.rank(), 2);
  EXPECT_EQ(message.plan().weight_bytes_size(), 3);
  EXPECT_EQ(message.plan().mesh().axes(0).size(), 3);
}

TEST_F(SharedText, TooFewWorkersAreToldHowManyAndWhy) {
  ids_ = h().JoinMany(3);
  Ask(Trained(kLarge), Request());
  EXPECT_EQ(Refusal(),
            absl::UnavailableError(
                "the model's weights take 3.91 KiB in f32, and of the idle "
                "workers w0 has most, 1000 B; cut as its job was, the text "
                "takes 4 idle workers of one kind, tensor 2 x pipeline 2, and "
                "the cluster has 3; add workers, or cut the model otherwise: "
                "--tensor N and --pipeline N of troupe generate"));
  EXPECT_EQ(h().cluster.workers().idle_count(), 3);
}

TEST_F(SharedText, TooFewIdleOnesToo) {
  ids_ = h().JoinMany(4);
  h().Running({ids_[0]});
  h().ClearActions();
  GenerateRequest request = Request();
  request.set_tensor(4);
  Ask(Trained(kLarge), request);
  EXPECT_EQ(
      Refusal(),
      absl::UnavailableError(
          "the text takes 4 idle workers of one kind, tensor 4 x pipeline 1, "
          "with 1000 B of memory each, and 3 of 4 are idle, 3 of these with "
          "that much; try again when a job has ended, add workers, or cut the "
          "model otherwise: --tensor N and --pipeline N of troupe generate"));
  EXPECT_EQ(h().cluster.workers().idle_count(), 3);
}

TEST_F(SharedText, NobodyHasTheMemory) {
  ids_ = h().JoinMany(4);
  GenerateRequest request = Request();
  request.set_tensor(2);
  Ask(Trained(kLarge), request);
  EXPECT_THAT(std::string(Refusal().message()),
              HasSubstr("with 1.95 KiB of memory each, and 4 of 4 are idle, 0 "
                        "of these with that much"));
}

TEST_F(SharedText, WorkersOfTwoKindsDoNotWriteTogether) {
  Register gpu = RegisterOf("gpu");
  gpu.mutable_worker()->mutable_gpu()->set_name("H200");
  ASSERT_TRUE(h().cluster.RegisterWorker(gpu, h().now, h().actions).ok());
  ids_ = h().JoinMany(3);
  Ask(Trained(kLarge), Request());
  EXPECT_TRUE(absl::IsUnavailable(Refusal())) << Refusal();
  ids_.push_back(h().Join("w3"));
  h().ClearActions();
  Ask(Trained(kLarge), Request());
  for (const WorkerId id : ids_) {
    EXPECT_TRUE(h().Sent(id).back().has_generate());
  }
}

TEST_F(SharedText, AModelThatWasNotCutIsNotCutUnasked) {
  ids_ = h().JoinMany(4);
  JobSpec trained = Trained(kLarge);
  trained.clear_parallelism();
  Ask(trained, Request());
  EXPECT_TRUE(absl::IsUnavailable(Refusal())) << Refusal();
  EXPECT_THAT(std::string(Refusal().message()),
              HasSubstr("did not cut it; say over how many workers to cut it, "
                        "--tensor N"));
  EXPECT_EQ(h().cluster.workers().idle_count(), 4);
}

TEST_F(SharedText, ACutThatCannotBeIsRefused) {
  ids_ = h().JoinMany(6);
  GenerateRequest request = Request();
  request.set_tensor(5);
  Ask(Trained(kSmall), request);
  EXPECT_EQ(Refusal(),
            absl::InvalidArgumentError("parallelism.tensor: 5 is odd"));
  EXPECT_EQ(h().cluster.workers().idle_count(), 6);
}

TEST_F(SharedText, ThePiecesOfTheFirstAreTheText) {
  const int64_t text = Begin();
  for (int rank = 0; rank < 4; ++rank) {
    GeneratedText piece = PieceOf(text);
    piece.set_text(absl::StrCat(rank));
    Say(rank, piece);
  }
  const auto replies = h().All<GenerateReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].response.text(), "0");
}

TEST_F(SharedText, EachIsFreeWhenItSaysThatItHasEnded) {
  const int64_t text = Begin();
  End(2, text);
  EXPECT_EQ(StateOf(2), WorkerStatus::IDLE);
  EXPECT_EQ(Ends(), 0) << "the first has more to say";
  End(0, text);
  EXPECT_EQ(Ends(), 1);
  EXPECT_TRUE(h().All<GenerateReply>().back().status.ok());
  EXPECT_TRUE(WasTold(1) && WasTold(3));
  EXPECT_FALSE(WasTold(2));
  EXPECT_EQ(StateOf(1), WorkerStatus::BUSY);
  End(1, text, "the text has ended", -1, /*stopped=*/true);
  End(3, text);
  EXPECT_EQ(h().cluster.workers().idle_count(), 4);
  EXPECT_EQ(Ends(), 1);
}

TEST_F(SharedText, ALostWorkerEndsItForAll) {
  for (int lost = 0; lost < 4; ++lost) {
    Afresh();
    const int64_t text = Begin();
    h().Disconnect(ids_[lost], "connection closed");
    EXPECT_EQ(Refusal(), absl::UnavailableError(absl::StrCat(
                             "w", lost,
                             " was lost while it wrote the text: connection "
                             "closed")));
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == lost) continue;
      EXPECT_TRUE(WasTold(rank));
      EXPECT_EQ(StateOf(rank), WorkerStatus::BUSY);
      End(rank, text, "rank did not come", lost);
    }
    EXPECT_EQ(h().cluster.workers().idle_count(), 3);
    EXPECT_EQ(Ends(), 1);
  }
}

TEST_F(SharedText, AnErrorEndsItForAllWithTheWorkersName) {
  const int64_t text = Begin();
  End(2, text, "no memory");
  EXPECT_EQ(Refusal(), absl::FailedPreconditionError("w2: no memory"));
  EXPECT_EQ(StateOf(2), WorkerStatus::IDLE);
  for (const int rank : {0, 1, 3}) {
    EXPECT_TRUE(WasTold(rank));
    End(rank, text, "w2 has failed", -1, /*stopped=*/true);
  }
  EXPECT_EQ(h().cluster.workers().idle_count(), 4);
  EXPECT_EQ(Ends(), 1);
}

// What one says of another is worth less than what that says itself.
TEST_F(SharedText, WhoIsBlamedMayExplainItself) {
  const int64_t text = Begin();
  End(0, text, "rank 2 has left", 2);
  EXPECT_EQ(Ends(), 0);
  EXPECT_TRUE(WasTold(2));
  End(2, text, "no memory");
  EXPECT_EQ(Refusal(), absl::FailedPreconditionError("w2: no memory"));
}

TEST_F(SharedText, WhoIsBlamedAndSaysNothingIsToBlame) {
  const int64_t text = Begin();
  End(0, text, "rank 2 did not come", 2);
  h().Pass(absl::Seconds(2), ids_);
  EXPECT_EQ(Ends(), 0);
  h().Pass(absl::Seconds(1), ids_);
  EXPECT_EQ(Refusal(),
            absl::UnavailableError("w0: rank 2 did not come (rank 2 is w2)"));
  for (const int rank : {1, 3}) {
    End(rank, text, "w0 has failed", -1, /*stopped=*/true);
  }
  h().Pass(absl::Seconds(31), ids_);
  EXPECT_EQ(StateOf(2), WorkerStatus::LOST);
  EXPECT_EQ(h().cluster.workers().idle_count(), 3);
  EXPECT_EQ(Ends(), 1);
}

// A worker that was told to stop could not say that it has while the scheduler
// slept.
TEST_F(SharedText, APauseOfTheSchedulerIsNobodysFault) {
  const int64_t text = Begin();
  End(0, text, "no memory");
  h().Pass(absl::Seconds(5), ids_);
  h().now += absl::Seconds(60);
  h().cluster.Tick(h().now, h().actions);
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(StateOf(rank), WorkerStatus::BUSY) << rank;
  }
  h().Pass(absl::Seconds(31), ids_);
  EXPECT_EQ(StateOf(1), WorkerStatus::LOST);
}

TEST_F(SharedText, OneThatIsStoppedBlamesNobody) {
  const int64_t text = Begin();
  End(0, text, "rank 2 did not come", 2);
  for (const int rank : {1, 2, 3}) {
    End(rank, text, "w0 has failed", -1, /*stopped=*/true);
  }
  EXPECT_EQ(Refusal(),
            absl::UnavailableError("w0: rank 2 did not come (rank 2 is w2)"));
  EXPECT_EQ(h().cluster.workers().idle_count(), 4);
}

TEST_F(SharedText, AbandonedOrCancelledAllAreStopped) {
  for (const bool cancelled : {false, true}) {
    Afresh();
    const int64_t text = Begin();
    if (cancelled) {
      const auto names = h().cluster.CancelText(text, h().now, h().actions);
      ASSERT_TRUE(names.ok()) << names.status();
      EXPECT_EQ(*names, "w0, w1, w2, w3");
    } else {
      h().cluster.AbandonText(text, h().now, h().actions);
    }
    EXPECT_EQ(Ends(), cancelled ? 1 : 0);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(WasTold(rank));
      End(rank, text, "stopped", -1, /*stopped=*/true);
    }
    EXPECT_EQ(h().cluster.workers().idle_count(), 4);
    EXPECT_EQ(Ends(), cancelled ? 1 : 0);
  }
}

// Its disk hangs; the others have their weights, and wait for it.
TEST_F(SharedText, TheOneThatLoadsForeverIsLostNotThoseWhoWaitForIt) {
  const int64_t text = Begin();
  for (const int rank : {0, 1, 2}) Loaded(rank, text);
  h().Pass(absl::Seconds(121), ids_);
  EXPECT_EQ(StateOf(3), WorkerStatus::LOST);
  EXPECT_EQ(h().worker(ids_[3]).reason(), "wrote nothing of text 1 for 2m");
  for (const int rank : {0, 1, 2}) EXPECT_EQ(StateOf(rank), WorkerStatus::BUSY);
}

TEST_F(SharedText, OnceAllHaveTheirWeightsTheFirstSpeaksForThem) {
  const int64_t text = Begin();
  for (const int rank : {0, 1, 2}) Loaded(rank, text);
  h().Pass(absl::Seconds(100), ids_);
  Loaded(3, text);
  h().Pass(absl::Seconds(100), ids_);  // the first could not speak before
  for (int minute = 0; minute < 5; ++minute) {
    Say(0, PieceOf(text));
    h().Pass(absl::Minutes(1), ids_);
  }
  EXPECT_EQ(h().cluster.workers().alive_count(), 4);
  h().Pass(absl::Seconds(61), ids_);
  EXPECT_EQ(StateOf(0), WorkerStatus::LOST);
  EXPECT_EQ(h().cluster.workers().alive_count(), 3);
}

TEST_F(SharedText, RanksMeetInAStoreOfTheirOwn) {
  const int64_t text = Begin();
  WorkerMessage get;
  get.mutable_store_get()->mutable_ref()->set_text(text);
  get.mutable_store_get()->mutable_ref()->set_rank(3);
  get.mutable_store_get()->set_key("address");
  h().Send(ids_[3], get);
  EXPECT_TRUE(h().Sent(ids_[3]).empty());
  WorkerMessage set;
  set.mutable_store_set()->mutable_ref()->set_text(text);
  set.mutable_store_set()->set_key("address");
  set.mutable_store_set()->set_value("host:1");
  h().Send(h().Join("stranger"), set);
  EXPECT_TRUE(h().Sent(ids_[3]).empty());
  h().Send(ids_[0], set);
  ASSERT_EQ(h().Sent(ids_[3]).size(), 1u);
  const StoreValue value = h().Sent(ids_[3])[0].store_value();
  EXPECT_EQ(value.ref().text(), text);
  EXPECT_EQ(value.ref().rank(), 3);
  EXPECT_EQ(value.value(), "host:1");
  h().Send(ids_[1], get);
  EXPECT_EQ(h().Sent(ids_[1]).back().store_value().value(), "host:1");
}

}  // namespace
}  // namespace troupe
