#include "worker/service/generation_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "worker/actor/thread_name.h"
#include "worker/rank/resident_memory.h"

namespace troupe {

GenerationRunner::GenerationRunner(const GenerateText& request,
                                   const RankResources& resources,
                                   SendToScheduler send)
    : request_(request), resources_(resources), send_(std::move(send)) {
  thread_ = std::thread([this] { Run(); });
}

GenerationRunner::~GenerationRunner() {
  StopText stop;
  stop.set_request(request_.request());
  stop.set_reason("the worker stops");
  Stop(stop);
  thread_.join();
}

void GenerationRunner::Stop(const StopText& stop) {
  if (stop.request() != request_.request()) return;
  absl::MutexLock lock(&mutex_);
  if (stopped_.ok()) stopped_ = absl::CancelledError(stop.reason());
}

absl::Status GenerationRunner::SendPiece(const TextPiece& piece) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_.ok()) return stopped_;
  }
  WorkerMessage message;
  GeneratedText& text = *message.mutable_generated();
  text.set_request(request_.request());
  text.set_text(piece.text);
  text.set_tokens(static_cast<int32_t>(piece.ids.size()));
  text.mutable_ids()->Assign(piece.ids.begin(), piece.ids.end());
  return send_(std::move(message));
}

absl::Status GenerationRunner::Generate() {
  const KeptFreeMemory kept;
  return ContinueText(
      {.checkpoint = request_.checkpoint(),
       .prompt = request_.prompt(),
       .prompt_ids = {request_.prompt_ids().begin(),
                      request_.prompt_ids().end()},
       .max_new_tokens = request_.max_new_tokens(),
       .sampling = {.temperature = request_.temperature(),
                    .top_k = request_.top_k(),
                    .seed = request_.seed()}},
      resources_.device, resources_.arenas,
      [this](const TextPiece& piece) { return SendPiece(piece); });
}

void GenerationRunner::Run() {
  NameThisThread("generate");
  const absl::Status status = Generate();
  ReleaseFreeMemory();
  WorkerMessage message;
  GeneratedText& last = *message.mutable_generated();
  last.set_request(request_.request());
  last.set_done(true);
  if (absl::IsCancelled(status)) {
    LogInfo(absl::StrCat("text ", request_.request(),
                         " is stopped: ", status.message()));
  } else if (!status.ok()) {
    LogWarning(absl::StrCat("text ", request_.request(),
                            " failed: ", status.message()));
  }
  if (!status.ok()) last.set_error(std::string(status.message()));
  // Without a scheduler there is nobody to tell.
  send_(std::move(message)).IgnoreError();
  ended_.Notify();
}

}  // namespace troupe
