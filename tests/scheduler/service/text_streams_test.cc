#include "gtest/gtest.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

GenerateRequest RequestOf() {
  GenerateRequest request;
  request.set_checkpoint("/c");
  request.set_prompt("In the");
  request.set_max_new_tokens(3);
  return request;
}

void Piece(FakeWorker& worker, int64_t request, const std::string& text,
           bool done) {
  WorkerMessage message;
  message.mutable_generated()->set_request(request);
  message.mutable_generated()->set_text(text);
  message.mutable_generated()->set_tokens(1);
  message.mutable_generated()->set_done(done);
  worker.Write(message);
}

TEST(TextStreams, RelaysAText) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  const auto context = Call();
  const auto stream = served.stub->Generate(context.get(), RequestOf());
  const GenerateText asked = worker->TakeText();
  EXPECT_EQ(asked.prompt(), "In the");
  Piece(*worker, asked.request(), " beginning", false);
  Piece(*worker, asked.request(), " was", true);
  std::string text;
  GenerateResponse piece;
  while (stream->Read(&piece)) text += piece.text();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(text, " beginning was");
}

TEST(TextStreams, NobodyToWriteIt) {
  ServedCluster served;
  const auto context = Call();
  const auto stream = served.stub->Generate(context.get(), RequestOf());
  GenerateResponse piece;
  EXPECT_FALSE(stream->Read(&piece));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(TextStreams, ALostWorkerEndsIt) {
  ServedCluster served;
  auto worker = served.Join("w0");
  const auto context = Call();
  const auto stream = served.stub->Generate(context.get(), RequestOf());
  ASSERT_TRUE(worker->Read()->has_read_job());
  worker.reset();
  GenerateResponse piece;
  EXPECT_FALSE(stream->Read(&piece));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(TextStreams, AClientThatGoesAwayStopsTheWorker) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  GenerateText asked;
  {
    const auto context = Call();
    const auto stream = served.stub->Generate(context.get(), RequestOf());
    asked = worker->TakeText();
    context->TryCancel();
    stream->Finish();
  }
  const auto stop = worker->Read();
  ASSERT_TRUE(stop.has_value() && stop->has_stop_text());
  EXPECT_EQ(stop->stop_text().request(), asked.request());
  Piece(*worker, asked.request(), "unread", true);
  served.AwaitThat(
      [](const Cluster& cluster) { return !cluster.workers().Idle().empty(); });
}

TEST(TextStreams, ACancelledTextEndsForItsClient) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  const auto context = Call();
  const auto stream = served.stub->Generate(context.get(), RequestOf());
  const GenerateText asked = worker->TakeText();
  CancelTextRequest request;
  CancelTextResponse response;
  request.set_text(asked.request() + 1);
  EXPECT_EQ(
      served.stub->CancelText(Call().get(), request, &response).error_code(),
      grpc::StatusCode::NOT_FOUND);
  const CapturedLog log;
  request.set_text(asked.request());
  ASSERT_TRUE(served.stub->CancelText(Call().get(), request, &response).ok());
  EXPECT_EQ(response.worker(), "w0");
  const std::string line = "which w0 wrote, cancelled by ";
  log.Await(1, line);
  EXPECT_EQ(log.Count(line), 1u);
  EXPECT_TRUE(worker->Read()->has_stop_text());
  GenerateResponse piece;
  EXPECT_FALSE(stream->Read(&piece));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::ABORTED);
}

}  // namespace
}  // namespace troupe
