#include "scheduler/cluster/generations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

absl::Status Validate(const GenerateRequest& request, const Limits& limits) {
  const int64_t id_bytes = int64_t{request.prompt_ids_size()} * 4;
  if (id_bytes > limits.prompt_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_ids: ", request.prompt_ids_size(),
                     " are more than ", limits.prompt_bytes_max / 4));
  }
  if (!request.prompt().empty() && request.prompt_ids_size() > 0) {
    return absl::InvalidArgumentError(
        "prompt and prompt_ids: give one of them");
  }
  if (static_cast<int64_t>(request.prompt().size()) > limits.prompt_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: ", request.prompt().size(), " bytes are more ",
                     "than ", limits.prompt_bytes_max));
  }
  if (request.max_new_tokens() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_new_tokens: ", request.max_new_tokens(), " is less than 1"));
  }
  if (request.max_new_tokens() > limits.new_tokens_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_new_tokens: ", request.max_new_tokens(),
                     " is more than ", limits.new_tokens_max));
  }
  if (!(request.temperature() >= 0) || std::isinf(request.temperature())) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: ", request.temperature(),
                     " is no number from 0 on; 0 is greedy"));
  }
  if (request.top_k() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k: ", request.top_k(), " is less than 0, which means all"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> Generations::Start(const GenerateRequest& request,
                                           const std::string& checkpoint,
                                           absl::Time now, Actions& actions) {
  if (absl::Status valid = Validate(request, limits_); !valid.ok()) {
    return valid;
  }
  const std::vector<const Worker*> idle = workers_.Idle();
  if (idle.empty()) {
    const size_t alive = workers_.Alive().size();
    return absl::UnavailableError(
        alive == 0 ? "the cluster has no worker; start one"
                   : absl::StrCat("no worker is idle, all ", alive,
                                  " are busy; try again when a job has ended, "
                                  "or add a worker"));
  }
  const int64_t id = next_request_++;
  const WorkerId worker = idle.front()->id;
  workers_.SeatText(worker, id);
  texts_[id] = {.worker = worker, .heard = now};
  SendToWorker send{worker, {}};
  GenerateText& text = *send.message.mutable_generate();
  text.set_request(id);
  text.set_checkpoint(checkpoint);
  text.set_prompt(request.prompt());
  *text.mutable_prompt_ids() = request.prompt_ids();
  text.set_max_new_tokens(request.max_new_tokens());
  text.set_temperature(request.temperature());
  text.set_top_k(request.top_k());
  text.set_seed(request.seed());
  actions.push_back(std::move(send));
  return id;
}

void Generations::HandlePiece(WorkerId from, const GeneratedText& piece,
                              absl::Time now, Actions& actions) {
  const auto it = texts_.find(piece.request());
  if (it == texts_.end() || it->second.worker != from) return;
  it->second.heard = now;
  const bool done = piece.done() || !piece.error().empty();
  if (!IsStopped(it->second)) {
    GenerateReply reply;
    reply.request = piece.request();
    reply.response.set_text(piece.text());
    reply.response.set_tokens(piece.tokens());
    *reply.response.mutable_ids() = piece.ids();
    reply.done = done;
    if (!piece.error().empty()) {
      reply.status = absl::FailedPreconditionError(
          OneLine(piece.error(), limits_.reason_bytes_max));
    }
    actions.push_back(std::move(reply));
  }
  if (!done) return;
  workers_.Release(from);
  texts_.erase(it);
}

void Generations::Stop(Texts::iterator text, const std::string& reason,
                       absl::Time now, Actions& actions) {
  if (IsStopped(text->second)) return;
  text->second.stopped = now;
  SendToWorker send{text->second.worker, {}};
  send.message.mutable_stop_text()->set_request(text->first);
  send.message.mutable_stop_text()->set_reason(reason);
  actions.push_back(std::move(send));
}

void Generations::Abandon(int64_t request, absl::Time now, Actions& actions) {
  const auto it = texts_.find(request);
  if (it == texts_.end()) return;
  Stop(it, "whoever asked for it is gone", now, actions);
}

absl::StatusOr<std::string> Generations::Cancel(int64_t request, absl::Time now,
                                                Actions& actions) {
  const auto it = texts_.find(request);
  if (it == texts_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no worker writes a text ", request,
                     "; troupe workers shows what each does"));
  }
  if (!IsStopped(it->second)) {
    GenerateReply reply;
    reply.request = request;
    reply.done = true;
    reply.status =
        absl::AbortedError(absl::StrCat("text ", request, " was cancelled"));
    actions.push_back(std::move(reply));
  }
  Stop(it, "it was cancelled", now, actions);
  return workers_.Find(it->second.worker)->name();
}

void Generations::WorkerGone(const Worker& worker, const std::string& reason,
                             Actions& actions) {
  const auto it = texts_.find(worker.status.text());
  if (it == texts_.end()) return;
  if (!IsStopped(it->second)) {
    GenerateReply reply;
    reply.request = it->first;
    reply.done = true;
    reply.status = absl::UnavailableError(absl::StrCat(
        worker.name(), " was lost while it wrote the text: ", reason));
    actions.push_back(std::move(reply));
  }
  texts_.erase(it);
}

void Generations::Forgive(absl::Duration time, absl::Time now) {
  for (auto& [id, text] : texts_) text.heard = std::min(text.heard + time, now);
}

std::vector<StuckWorker> Generations::Tick(absl::Time now) const {
  std::vector<StuckWorker> stuck;
  for (const auto& [id, text] : texts_) {
    if (IsStopped(text) && now - text.stopped > limits_.stop_max) {
      stuck.push_back(
          {text.worker, absl::StrCat("did not stop text ", id, " within ",
                                     absl::FormatDuration(limits_.stop_max))});
    } else if (now - text.heard > limits_.generate_max) {
      stuck.push_back(
          {text.worker,
           absl::StrCat("wrote nothing of text ", id, " for ",
                        absl::FormatDuration(limits_.generate_max))});
    }
  }
  return stuck;
}

}  // namespace troupe
