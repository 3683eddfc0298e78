#include "scheduler/cluster/generations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/check_text_request.h"
#include "scheduler/cluster/choose_writers.h"

namespace troupe {
namespace {

StoreValue ValueFor(const RankRef& ref, const std::string& key,
                    const std::string& value) {
  StoreValue answer;
  *answer.mutable_ref() = ref;
  answer.set_key(key);
  answer.set_value(value);
  return answer;
}

}  // namespace

int Generations::Text::RankOf(WorkerId worker) const {
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].worker == worker) return static_cast<int>(rank);
  }
  return -1;
}

std::string Generations::Text::Names() const {
  return absl::StrJoin(members, ", ",
                       [](std::string* out, const Member& member) {
                         absl::StrAppend(out, member.name);
                       });
}

absl::StatusOr<int64_t> Generations::Start(const GenerateRequest& request,
                                           const std::string& checkpoint,
                                           absl::Time now, Actions& actions) {
  if (absl::Status valid = CheckTextRequest(request, limits_); !valid.ok()) {
    return valid;
  }
  const std::vector<const Worker*> idle = workers_.Idle();
  if (idle.empty()) {
    const int alive = workers_.in_service_count();
    return absl::UnavailableError(
        workers_.alive_count() == 0 ? "the cluster has no worker; start one"
        : alive == 0
            ? "all workers are set aside; troupe workers says why"
            : absl::StrCat("no worker is idle, all ", alive,
                           " are busy; try again when a job has ended, "
                           "or add a worker"));
  }
  const auto it = texts_.emplace(next_request_++, limits_).first;
  Text& text = it->second;
  text.request = request;
  text.checkpoint = checkpoint;
  SeatMembers({idle.front()->id}, now, it);
  SendToWorker send{idle.front()->id, {}};
  send.message.mutable_read_job()->set_request(it->first);
  send.message.mutable_read_job()->set_checkpoint(checkpoint);
  actions.push_back(std::move(send));
  return it->first;
}

void Generations::SeatMembers(const std::vector<WorkerId>& ids, absl::Time now,
                              Texts::iterator it) {
  it->second.members.clear();
  for (const WorkerId id : ids) {
    workers_.SeatText(id, it->first);
    it->second.members.push_back(
        {.worker = id, .name = workers_.Find(id)->name(), .heard = now});
  }
}

void Generations::HandOut(Texts::iterator it, const TextPlan& plan,
                          Actions& actions) {
  Text& text = it->second;
  text.writes = true;
  GenerateText message;
  message.set_request(it->first);
  message.set_checkpoint(text.checkpoint);
  message.set_made(text.made);
  message.set_prompt(text.request.prompt());
  *message.mutable_prompt_ids() = text.request.prompt_ids();
  message.set_max_new_tokens(text.request.max_new_tokens());
  message.set_ignore_eos(text.request.ignore_eos());
  message.set_temperature(text.request.temperature());
  message.set_top_k(text.request.top_k());
  message.set_seed(text.request.seed());
  message.set_collective_seconds_max(
      absl::ToDoubleSeconds(limits_.text_collective_max));
  *message.mutable_plan() = plan;
  for (size_t rank = 0; rank < text.members.size(); ++rank) {
    SendToWorker send{text.members[rank].worker, {}};
    *send.message.mutable_generate() = message;
    send.message.mutable_generate()->set_rank(static_cast<int>(rank));
    actions.push_back(std::move(send));
  }
}

Generations::Texts::iterator Generations::Find(int64_t request, WorkerId from) {
  const auto it = texts_.find(request);
  if (it == texts_.end()) return it;
  const int rank = it->second.RankOf(from);
  if (rank < 0 || it->second.members[rank].gone) return texts_.end();
  return it;
}

void Generations::HandleMessage(WorkerId from, const WorkerMessage& message,
                                absl::Time now, Actions& actions) {
  switch (message.message_case()) {
    case WorkerMessage::kCheckpointJob:
      return HandleJob(from, message.checkpoint_job(), now, actions);
    case WorkerMessage::kGenerated:
      return HandlePiece(from, message.generated(), now, actions);
    case WorkerMessage::kStoreSet:
      return Set(from, message.store_set(), now, actions);
    case WorkerMessage::kStoreGet:
      return Get(from, message.store_get(), now, actions);
    default:
      return;
  }
}

void Generations::HandleJob(WorkerId from, const CheckpointJob& job,
                            absl::Time now, Actions& actions) {
  const auto it = Find(job.request(), from);
  if (it == texts_.end() || it->second.writes) return;
  if (!job.error().empty()) {
    Answer(it,
           absl::FailedPreconditionError(absl::StrCat(
               it->second.members.front().name, ": ",
               OneLine(job.error(), limits_.reason_bytes_max),
               "; all workers must see the checkpoint at this path")),
           actions);
  }
  if (it->second.answered) return LetGo(it, 0, actions);
  workers_.Release(from);
  const absl::StatusOr<Writers> writers =
      ChooseWriters(it->second.request, job.job(), from, compiler_, workers_);
  if (!writers.ok()) {
    Answer(it,
           absl::Status(
               writers.status().code(),
               OneLine(writers.status().message(), limits_.reason_bytes_max)),
           actions);
    texts_.erase(it);
    return;
  }
  it->second.made = job.made();
  SeatMembers(writers->ids, now, it);
  HandOut(it, writers->plan, actions);
}

void Generations::HandlePiece(WorkerId from, const GeneratedText& piece,
                              absl::Time now, Actions& actions) {
  const auto it = Find(piece.request(), from);
  if (it == texts_.end() || !it->second.writes) return;
  Text& text = it->second;
  const int rank = text.RankOf(from);
  text.members[rank].heard = now;
  if (piece.loaded() && !text.members[rank].loaded) {
    text.members[rank].loaded = true;
    // The first one could do nothing but wait for this.
    text.members[0].heard = now;
  }
  const bool failed = !piece.error().empty();
  if (failed) {
    HandleError(it, rank, piece, now, actions);
  } else if (rank == 0) {
    Relay(it, piece, actions);
  }
  if (!piece.done() && !failed) return;
  if (rank == 0) Stop(it, "the text has ended", now, actions);
  LetGo(it, rank, actions);
}

void Generations::Relay(Texts::iterator it, const GeneratedText& piece,
                        Actions& actions) {
  if (it->second.answered) return;
  GenerateReply reply;
  reply.request = piece.request();
  reply.response.set_text(piece.text());
  reply.response.set_tokens(piece.tokens());
  *reply.response.mutable_ids() = piece.ids();
  reply.done = it->second.answered = piece.done();
  actions.push_back(std::move(reply));
}

void Generations::HandleError(Texts::iterator it, int rank,
                              const GeneratedText& piece, absl::Time now,
                              Actions& actions) {
  Text& text = it->second;
  text.members[rank].gone = true;  // needs not be told to stop
  const std::string said = OneLine(piece.error(), limits_.reason_bytes_max);
  if (text.members.size() == 1) {
    return Answer(it, absl::FailedPreconditionError(said), actions);
  }
  const std::string& name = text.members[rank].name;
  const bool told = piece.stopped() && text.IsStopped();
  if (!told && !piece.has_missing_rank()) {
    Answer(it, absl::FailedPreconditionError(absl::StrCat(name, ": ", said)),
           actions);
  } else if (!told && text.failure.ok()) {
    const int missing = piece.missing_rank();
    const bool known =
        missing >= 0 && missing < static_cast<int>(text.members.size());
    text.failure = absl::UnavailableError(
        absl::StrCat(name, ": ", said,
                     known ? absl::StrCat(" (rank ", missing, " is ",
                                          text.members[missing].name, ")")
                           : ""));
    text.failed = now;
  }
  Stop(it, absl::StrCat(name, " has failed"), now, actions);
}

void Generations::Set(WorkerId from, const StoreSet& set, absl::Time now,
                      Actions& actions) {
  const auto it = Find(set.ref().text(), from);
  if (it == texts_.end()) return;
  Text& text = it->second;
  const auto waited = text.rendezvous.Set(set.key(), set.value());
  if (!waited.ok()) {
    Answer(it, waited.status(), actions);
    return Stop(it, std::string(waited.status().message()), now, actions);
  }
  for (const int rank : *waited) {
    if (text.members[rank].gone) continue;
    RankRef ref;
    ref.set_text(it->first);
    ref.set_rank(rank);
    SendToWorker send{text.members[rank].worker, {}};
    *send.message.mutable_store_value() = ValueFor(ref, set.key(), set.value());
    actions.push_back(std::move(send));
  }
}

void Generations::Get(WorkerId from, const StoreGet& get, absl::Time now,
                      Actions& actions) {
  const auto it = Find(get.ref().text(), from);
  if (it == texts_.end()) return;
  Text& text = it->second;
  const auto found = text.rendezvous.Get(text.RankOf(from), get.key());
  if (!found.ok()) {
    Answer(it, found.status(), actions);
    return Stop(it, std::string(found.status().message()), now, actions);
  }
  if (*found == nullptr) return;
  SendToWorker send{from, {}};
  *send.message.mutable_store_value() = ValueFor(get.ref(), get.key(), **found);
  actions.push_back(std::move(send));
}

void Generations::Answer(Texts::iterator it, const absl::Status& status,
                         Actions& actions) {
  if (it->second.answered) return;
  it->second.answered = true;
  GenerateReply reply;
  reply.request = it->first;
  reply.done = true;
  reply.status = status;
  actions.push_back(std::move(reply));
}

void Generations::Stop(Texts::iterator it, const std::string& reason,
                       absl::Time now, Actions& actions) {
  Text& text = it->second;
  if (text.IsStopped()) return;
  text.stopped = now;
  for (const Member& member : text.members) {
    if (member.gone) continue;
    SendToWorker send{member.worker, {}};
    send.message.mutable_stop_text()->set_request(it->first);
    send.message.mutable_stop_text()->set_reason(reason);
    actions.push_back(std::move(send));
  }
}

void Generations::LetGo(Texts::iterator it, int rank, Actions& actions) {
  Text& text = it->second;
  const Worker* const worker = workers_.Find(text.members[rank].worker);
  if (worker != nullptr && worker->alive()) workers_.Release(worker->id);
  text.members[rank].gone = true;
  const bool last =
      std::all_of(text.members.begin(), text.members.end(),
                  [](const Member& member) { return member.gone; });
  if (!last) return;
  if (!text.failure.ok()) Answer(it, text.failure, actions);
  texts_.erase(it);
}

void Generations::Abandon(int64_t request, absl::Time now, Actions& actions) {
  const auto it = texts_.find(request);
  if (it == texts_.end()) return;
  it->second.answered = true;
  Stop(it, "the client that asked for it is gone", now, actions);
}

absl::StatusOr<std::string> Generations::Cancel(int64_t request, absl::Time now,
                                                Actions& actions) {
  const auto it = texts_.find(request);
  if (it == texts_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no worker writes a text ", request,
                     "; troupe workers shows what each does"));
  }
  Answer(it,
         absl::AbortedError(absl::StrCat("text ", request, " was cancelled")),
         actions);
  Stop(it, "it was cancelled", now, actions);
  return it->second.Names();
}

void Generations::WorkerGone(const Worker& worker, const std::string& reason,
                             absl::Time now, Actions& actions) {
  const auto it = Find(worker.status.text(), worker.id);
  if (it == texts_.end()) return;
  Answer(it,
         absl::UnavailableError(absl::StrCat(
             worker.name(), " was lost while it wrote the text: ", reason)),
         actions);
  const int rank = it->second.RankOf(worker.id);
  it->second.members[rank].gone = true;
  Stop(it, absl::StrCat(worker.name(), " was lost"), now, actions);
  LetGo(it, rank, actions);
}

void Generations::Forgive(absl::Duration time, absl::Time now) {
  for (auto& [id, text] : texts_) {
    for (Member& member : text.members) {
      member.heard = std::min(member.heard + time, now);
    }
    if (text.IsStopped()) text.stopped = std::min(text.stopped + time, now);
    if (text.failed != absl::InfiniteFuture()) {
      text.failed = std::min(text.failed + time, now);
    }
  }
}

std::vector<StuckWorker> Generations::Tick(absl::Time now, Actions& actions) {
  std::vector<StuckWorker> stuck;
  for (auto it = texts_.begin(); it != texts_.end(); ++it) {
    const Text& text = it->second;
    if (now - text.failed > limits_.fail_grace) {
      Answer(it, text.failure, actions);
    }
    const bool all_loaded =
        std::all_of(text.members.begin(), text.members.end(),
                    [](const Member& member) { return member.loaded; });
    for (size_t rank = 0; rank < text.members.size(); ++rank) {
      const Member& member = text.members[rank];
      if (member.gone) continue;
      // A member that has its weights waits for those that have not; then it is
      // heard through the first.
      const bool speaks = !member.loaded || (all_loaded && rank == 0);
      if (text.IsStopped() && now - text.stopped > limits_.stop_max) {
        stuck.push_back(
            {member.worker,
             absl::StrCat("did not stop text ", it->first, " within ",
                          absl::FormatDuration(limits_.stop_max))});
      } else if (speaks && now - member.heard > limits_.generate_max) {
        stuck.push_back(
            {member.worker,
             absl::StrCat("wrote nothing of text ", it->first, " for ",
                          absl::FormatDuration(limits_.generate_max))});
      }
    }
  }
  return stuck;
}

}  // namespace troupe
