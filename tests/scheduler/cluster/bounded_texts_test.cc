// What workers say is on one line, and short, wherever it is kept, shown or
// sent on.
#include "gtest/gtest.h"
#include "proto/base/one_line.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

// Of a worker that speaks too much, to people's terminals.
std::string Flood() { return "failed\n\x1b[2J" + std::string(1 << 20, 'x'); }

constexpr size_t kMost = 5000;  // a reason, and a few words before it

void ExpectBounded(const Harness& h) {
  for (const auto& [id, job] : h.cluster.jobs().all()) {
    EXPECT_TRUE(IsOneLine(job->status.reason(), kMost));
    for (const JobEvent& event : job->events) {
      EXPECT_TRUE(IsOneLine(event.text(), kMost));
    }
  }
  for (const auto& [id, worker] : h.cluster.workers().all()) {
    EXPECT_TRUE(IsOneLine(worker.status.reason(), kMost));
  }
  for (const Action& action : h.actions) {
    if (const auto* drop = std::get_if<DropWorker>(&action)) {
      EXPECT_TRUE(IsOneLine(drop->reason, kMost));
    } else if (const auto* send = std::get_if<SendToWorker>(&action)) {
      EXPECT_TRUE(IsOneLine(send->message.stop().reason(), kMost));
    } else if (const auto* reply = std::get_if<GenerateReply>(&action)) {
      EXPECT_TRUE(IsOneLine(std::string(reply->status.message()), kMost));
    }
  }
}

TEST(BoundedTexts, OfARankThatFails) {
  Harness h;
  const std::vector<WorkerId> on = {h.Join("w0"), h.Join("w1")};
  const JobId id = h.Running(on);
  h.Ended(id, 0, on[0], {.ok = false, .error = Flood()});
  EXPECT_EQ(h.status(id).state(), STOPPING);
  EXPECT_NE(h.status(id).reason().find("failed\\n\\x1b[2Jxx"),
            std::string::npos);
  ExpectBounded(h);
  h.Ended(id, 1, on[1], {.ok = false, .error = Flood()});
  EXPECT_EQ(h.status(id).state(), FAILED);
  ExpectBounded(h);
}

TEST(BoundedTexts, OfWhatARankNotices) {
  Harness h;
  const std::vector<WorkerId> on = {h.Join("w0"), h.Join("w1")};
  const JobId id = h.Running(on);
  const size_t before = h.job(id).events.size();
  for (int i = 0; i < 1000; ++i) {
    WorkerMessage notice;
    *notice.mutable_notice()->mutable_ref() = h.Ref(id, 1);
    notice.mutable_notice()->set_text(Flood());
    h.Send(on[1], notice);
  }
  EXPECT_EQ(h.job(id).events.size(), before + Limits().notices_max);
  EXPECT_EQ(h.job(id).events.back().text().find("w1 (rank 1): failed\\n"), 0u);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  ExpectBounded(h);
}

TEST(BoundedTexts, OfAWorkerThatLeaves) {
  Harness h;
  const std::vector<WorkerId> on = {h.Join("w0"), h.Join("w1")};
  const JobId id = h.Running(on);
  WorkerMessage leaving;
  *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 0);
  leaving.mutable_leaving()->set_reason(Flood());
  h.Send(on[0], leaving);
  EXPECT_NE(h.status(id).reason().find("failed\\n\\x1b[2Jxx"),
            std::string::npos);
  ExpectBounded(h);
  WorkerMessage goodbye;
  goodbye.mutable_goodbye()->set_reason(Flood());
  h.Send(on[0], goodbye);
  EXPECT_EQ(h.worker(on[0]).reason().substr(0, 10), "failed\\n\\x");
  ExpectBounded(h);
}

TEST(BoundedTexts, OfWarnings) {
  Harness h;
  const WorkerId on = h.Join("w0");
  const JobId id = h.Submit(SpecOf(1));
  WorkerMessage ready;
  *ready.mutable_rank_ready()->mutable_ref() = h.Ref(id, 0);
  for (int i = 0; i < 100; ++i)
    ready.mutable_rank_ready()->add_warnings(Flood());
  h.Send(on, ready);
  EXPECT_LT(h.job(id).events.size(), 30u);
  ExpectBounded(h);
}

TEST(BoundedTexts, OfATextThatFails) {
  Harness h;
  const WorkerId on = h.Join("w0");
  GenerateRequest request;
  request.set_checkpoint("/c/step-1");
  request.set_max_new_tokens(1);
  const auto number = h.cluster.Generate(request, h.now, h.actions);
  ASSERT_TRUE(number.ok()) << number.status();
  WorkerMessage job;
  job.mutable_checkpoint_job()->set_request(*number);
  h.Send(on, job);
  WorkerMessage piece;
  piece.mutable_generated()->set_request(*number);
  piece.mutable_generated()->set_error(Flood());
  h.Send(on, piece);
  EXPECT_EQ(h.All<GenerateReply>().size(), 1u);
  ExpectBounded(h);
}

}  // namespace
}  // namespace troupe
