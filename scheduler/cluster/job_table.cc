#include "scheduler/cluster/job_table.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "proto/base/resume_words.h"
#include "scheduler/cluster/step_weight.h"
#include "scheduler/cluster/stored_run.h"

namespace troupe {
namespace {

// Ends have a place even where chatter has filled the list.
constexpr int kEventsReserved = 8;

// As it is written, without what says nothing: "/c/./" is "/c". Empty: none.
std::string NormalDirectory(const std::string& written) {
  const std::filesystem::path path =
      std::filesystem::path(written).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::string CheckpointDirectory(const JobSpec& spec) {
  return NormalDirectory(spec.checkpoint().directory());
}

// The job comes from the store, with the phase that it had.
bool IsRestoring(PhaseEvent event) {
  return event == PhaseEvent::kRestoredInQueue ||
         event == PhaseEvent::kRestoredEnded ||
         event == PhaseEvent::kRestoredRunning ||
         event == PhaseEvent::kRestoredStopping;
}

int64_t StepWeights(const std::deque<StepRecord>& steps) {
  int64_t weights = 0;
  for (const StepRecord& step : steps) weights += StepWeight(step);
  return weights;
}

// The last step goes to each client that lists jobs, so it is as small as any.
void SetLastStep(const StepRecord& step, JobStatus& status) {
  *status.mutable_last_step() = step;
  status.mutable_last_step()->clear_sequence_losses();
  status.mutable_last_step()->clear_sample();
  status.set_steps_done(step.step());
}

std::string EventText(JobState state, const std::string& reason) {
  const std::string name = absl::AsciiStrToLower(JobState_Name(state));
  return reason.empty() ? name : absl::StrCat(name, ": ", reason);
}

}  // namespace

Job& JobTable::Add(const JobSpec& spec, int ranks_needed, absl::Time now,
                   Actions& actions, const Submitter& by,
                   absl::optional<JobSpec> open) {
  Forget(actions);
  const JobId id(next_id_++);
  auto& job = jobs_[id];
  job = std::make_unique<Job>();
  job->id = id;
  job->spec = spec;
  job->open = std::move(open);
  job->saves_in = CheckpointDirectory(spec);
  job->ranks_needed = ranks_needed;
  job->status.set_id(id.value());
  job->status.set_name(spec.name());
  job->status.set_submitted_by(by.client);
  job->status.set_made_by(OneLine(by.made_by, limits_.worker_name_bytes_max));
  job->status.set_run_id(new_run_id_());
  job->status.set_submitted_unix_ms(absl::ToUnixMillis(now));
  job->status.set_steps_total(spec.training().steps());
  Enter(*job, PhaseEvent::kSubmitted, phase::Queued());
  SetState(*job, QUEUED, "", now, actions);
  if (!by.client.empty()) {
    AddEvent(*job, absl::StrCat("submitted by ", by.client), now, actions);
  }
  return *job;
}

int JobTable::QueuedOf(const std::string& client) const {
  return static_cast<int>(std::count_if(
      queue_.begin(), queue_.end(),
      [&](JobId id) { return Find(id)->status.submitted_by() == client; }));
}

void JobTable::Restore(StoredJob stored, int ranks_needed, Actions& actions) {
  const JobId id(stored.row.status.id());
  CHECK(jobs_.count(id) == 0) << "job " << id << " restored twice";
  next_id_ = std::max(next_id_, id.value() + 1);
  auto& job = jobs_[id];
  job = std::make_unique<Job>();
  job->id = id;
  job->spec = std::move(stored.row.spec);
  job->saves_in = CheckpointDirectory(job->spec);
  job->status = std::move(stored.row.status);
  if (job->status.has_open()) {
    job->open = std::move(*job->status.mutable_open());
    job->status.clear_open();
  }
  job->ranks_needed = ranks_needed;
  job->attempt = stored.row.attempt;
  job->cancelled = stored.row.cancelled;
  job->plan = std::move(stored.row.plan);
  for (const StepRecord& step : stored.steps) job->series.Add(step);
  const size_t newest =
      std::min<size_t>(stored.steps.size(), limits_.steps_per_job_max);
  job->steps.assign(stored.steps.end() - newest, stored.steps.end());
  job->events = std::move(stored.events);
  steps_kept_ += StepWeights(job->steps);
  if (job->status.state() == QUEUED) {
    Enter(*job, PhaseEvent::kRestoredInQueue, phase::Queued());
  } else if (job->ended()) {
    Enter(*job, PhaseEvent::kRestoredEnded, phase::Ended{});
  }
  Become(*job, job->status.state());
  // It ran, and stood still when the scheduler before this one ended.
  job->stands_longer = job->status.started_unix_ms() != 0 && !job->ended() &&
                       job->status.state() != RUNNING;
  if (!job->saves_in.empty() && !job->ended() &&
      job->status.started_unix_ms() != 0) {
    savers_.emplace(job->saves_in, id);
  }
  // Steps are written apart from the job's row, and may be ahead of it.
  if (!job->steps.empty()) SetLastStep(job->steps.back(), job->status);
  if (job->status.run_id().empty() && !job->ended()) {
    job->status.set_run_id(new_run_id_());  // an older scheduler gave it none
    Save(*job, actions);
  }
  Forget(actions);
}

Job* JobTable::Find(JobId id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

const Job* JobTable::Find(JobId id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

const Job* JobTable::SavesInPlaceOf(const Job& job) const {
  if (job.saves_in.empty()) return nullptr;
  const auto it = savers_.find(job.saves_in);
  if (it == savers_.end() || it->second == job.id) return nullptr;
  return Find(it->second);
}

bool JobTable::MayYetWrite(const JobSpec& spec) const {
  const std::string& resume = spec.checkpoint().resume();
  if (resume.empty()) return false;
  // `resume` is a checkpoint in a folder, or the folder.
  const std::string folder = IsResumeWord(resume) ? CheckpointDirectory(spec)
                                                  : NormalDirectory(resume);
  const std::string above = std::filesystem::path(folder).parent_path();
  for (const auto& [id, job] : all()) {
    if (job->ended() || job->saves_in.empty()) continue;
    if (job->saves_in == folder || job->saves_in == above) return true;
  }
  return false;
}

void JobTable::BeginRun(Job& job, std::unique_ptr<Run> run, PhaseEvent event,
                        RunPhase phase) {
  CHECK(job.run == nullptr && SavesInPlaceOf(job) == nullptr)
      << "job " << job.id;
  job.run = std::move(run);
  job.run->done_before = job.status.steps_done();
  if (!job.saves_in.empty()) savers_[job.saves_in] = job.id;
  Enter(job, event, std::move(phase));
  job.status.set_intent(INTENT_RUN);
}

std::unique_ptr<Run> JobTable::EndRun(Job& job) {
  CHECK(job.run != nullptr) << "job " << job.id;
  std::unique_ptr<Run> run = std::move(job.run);
  LeaveDirectory(job);
  return run;
}

void JobTable::TakeEdge(Job& job, PhaseEvent event, JobPhase to) {
  if (job.due != PhaseEffect::kNone) {
    FindDefective(job, absl::StrCat("nobody was told to ", EffectName(job.due),
                                    " before \"", EventName(event), "\""));
  }
  const JobPhase from =
      IsRestoring(event) ? JOB_PHASE_UNSPECIFIED : job.status.phase();
  const int edge = NextPhaseEdge(from, job.status.intent(), event);
  if (edge >= 0 && PhaseEdges()[edge].to == to) {
    ++edges_taken_[edge];
    job.due = PhaseEdges()[edge].effect;
  } else {
    FindDefective(
        job,
        absl::StrCat("the job is ", PhaseName(from), ", with the intent to ",
                     IntentName(job.status.intent()),
                     ", and the table of phases has no edge to ", PhaseName(to),
                     " by \"", EventName(event), "\""));
    job.due = EffectOf(event);
  }
  job.status.set_phase(to);
}

void JobTable::FindDefective(Job& job, const std::string& what) {
  if (!job.defect.empty()) return;
  job.defect = absl::StrCat("a defect of the scheduler: ", what,
                            "; please report it with the job's events");
  defective_.push_back(job.id);
}

void JobTable::Enter(Job& job, PhaseEvent event, RunPhase phase) {
  CHECK(job.run != nullptr) << "job " << job.id;
  TakeEdge(job, event, KindOf(phase));
  job.phase = phase::InRun{};
  job.run->phase = std::move(phase);
}

void JobTable::Enter(Job& job, PhaseEvent event, PhaseOfJob phase) {
  TakeEdge(job, event, KindOf(phase));
  job.phase = std::move(phase);
}

std::vector<JobId> JobTable::TakeDefective() {
  return std::exchange(defective_, {});
}

void JobTable::Raise(Job& job, RunIntent intent) {
  CHECK(job.run != nullptr) << "job " << job.id;
  if (KindOf(intent) < job.status.intent()) return;
  job.status.set_intent(KindOf(intent));
  job.run->intent = std::move(intent);
}

// What it has saved is its own until it has ended, though it may be queued.
void JobTable::LeaveDirectory(const Job& job) {
  const bool keeps = !job.ended() && job.status.started_unix_ms() != 0;
  if (keeps || job.run != nullptr) return;
  const auto it = savers_.find(job.saves_in);
  if (it != savers_.end() && it->second == job.id) savers_.erase(it);
}

void JobTable::Become(Job& job, JobState state) {
  job.status.set_state(state);
  if (state == QUEUED) {
    queue_.insert(job.id);
  } else {
    queue_.erase(job.id);
  }
}

void JobTable::SetState(Job& job, JobState state, const std::string& reason,
                        absl::Time now, Actions& actions) {
  CHECK(!job.ended()) << "job " << job.id << " has ended";
  Become(job, state);
  job.status.set_reason(OneLine(reason, limits_.reason_bytes_max));
  if (state == RUNNING && job.status.started_unix_ms() == 0)
    job.status.set_started_unix_ms(absl::ToUnixMillis(now));
  if (Job::IsEnded(state)) {
    job.status.set_finished_unix_ms(absl::ToUnixMillis(now));
    LeaveDirectory(job);
  }
  Save(job, actions);
  AddEvent(job, EventText(state, reason), now, actions);
}

void JobTable::SetWaitReason(Job& job, const std::string& reason,
                             Actions& actions) {
  CHECK(!job.ended()) << "job " << job.id << " has ended";
  std::string line = OneLine(reason, limits_.reason_bytes_max);
  if (job.status.reason() == line) return;
  job.status.set_reason(std::move(line));
  actions.push_back(NotifyJob{job.id});
}

void JobTable::AddEvent(Job& job, const std::string& text, absl::Time now,
                        Actions& actions) {
  const int count = static_cast<int>(job.events.size());
  const bool ends = job.ended() || job.cancelled;
  const int room = limits_.events_per_job_max - (ends ? 0 : kEventsReserved);
  if (count >= room) return;
  JobEvent& event = job.events.emplace_back();
  event.set_unix_ms(absl::ToUnixMillis(now));
  event.set_text(!ends && count + 1 == room
                     ? "no more is told of this job but its end"
                     : OneLine(text, limits_.reason_bytes_max));
  actions.push_back(PersistEvent{job.id, count, event});
  actions.push_back(NotifyJob{job.id});
}

void JobTable::AddStep(Job& job, const StepRecord& step, Actions& actions) {
  job.series.Add(step);
  job.steps.push_back(step);
  steps_kept_ += StepWeight(step);
  if (static_cast<int64_t>(job.steps.size()) > limits_.steps_per_job_max) {
    DropOldestStep(job, actions);
  }
  SetLastStep(step, job.status);
  actions.push_back(PersistStep{job.id, step});
  actions.push_back(NotifyJob{job.id});
  if (steps_kept_ > limits_.steps_kept_max) Forget(actions);
}

void JobTable::DropOldestStep(Job& job, Actions& actions) {
  steps_kept_ -= StepWeight(job.steps.front());
  job.steps.pop_front();
  if (++job.steps_since_thinned < limits_.thinned_steps_max()) return;
  job.steps_since_thinned = 0;
  actions.push_back(Thinned(job, job.steps.front().step()));
}

void JobTable::AddTrace(Job& job, Timeline measured) {
  auto& kept = job.measured;
  int64_t bytes = job.measured_bytes;
  // A new attempt runs some steps again.
  while (!kept.empty() && kept.back()->step() >= measured.step()) {
    bytes -= kept.back()->SpaceUsedLong();
    kept.pop_back();
  }
  kept.push_back(std::make_shared<const Timeline>(std::move(measured)));
  bytes += kept.back()->SpaceUsedLong();
  while (kept.size() > 1 && bytes > limits_.trace_bytes_per_job_max) {
    bytes -= kept.front()->SpaceUsedLong();
    kept.pop_front();
  }
  CountTimelines(bytes, job.measured_bytes);
}

void JobTable::SetPredicted(Job& job,
                            std::shared_ptr<const Timeline> predicted) {
  job.predicted = std::move(predicted);
  CountTimelines(job.predicted ? job.predicted->SpaceUsedLong() : 0,
                 job.predicted_bytes);
}

void JobTable::CountTimelines(int64_t bytes, int64_t& counted) {
  timeline_bytes_ += bytes - counted;
  counted = bytes;
  for (const auto& [id, other] : jobs_) {
    if (timeline_bytes_ <= limits_.timeline_bytes_kept_max) break;
    if (other->ended() && other->run == nullptr) DropTimelines(*other);
  }
}

void JobTable::DropTimelines(Job& job) {
  timeline_bytes_ -= job.predicted_bytes + job.measured_bytes;
  job.predicted_bytes = job.measured_bytes = 0;
  job.predicted = nullptr;
  job.measured.clear();
}

void JobTable::AddCheckpoint(Job& job, const CheckpointRecord& checkpoint,
                             absl::Time now, Actions& actions) {
  job.moves_after = absl::InfinitePast();  // its disk takes what is saved
  job.move_pause = Job::kFirstPause;
  // In the order of their steps: an attempt that goes on from before one saves
  // it again, in its place.
  auto& kept = *job.status.mutable_checkpoints();
  int at = kept.size();
  while (at > 0 && kept[at - 1].step() >= checkpoint.step()) --at;
  if (at < kept.size() && kept[at].step() == checkpoint.step()) {
    kept[at] = checkpoint;
  } else {
    *kept.Add() = checkpoint;
    std::rotate(kept.begin() + at, kept.end() - 1, kept.end());
  }
  // The committing rank deletes what is more than the job keeps.
  int keep = limits_.checkpoints_per_job_max;
  const JobSpec& spec = job.plan ? job.plan->job() : job.spec;
  const int asked = spec.checkpoint().keep();
  if (asked > 0) keep = std::min(keep, asked);
  while (kept.size() > keep) kept.erase(kept.begin());
  job.status.clear_unsaved();
  job.status.clear_unsaved_step();
  job.status.clear_unsaved_since_unix_ms();
  Save(job, actions);
  // The status lists them: half of the events is left to others.
  const int events = static_cast<int>(job.events.size());
  if (events >= limits_.events_per_job_max / 2) return;
  AddEvent(job,
           absl::StrFormat("checkpoint of step %d: %s (%.1f MB in %.2f s)",
                           checkpoint.step(), checkpoint.path(),
                           checkpoint.bytes() / 1e6, checkpoint.seconds()),
           now, actions);
}

void JobTable::Save(const Job& job, Actions& actions) {
  auto row = std::make_shared<JobRow>();
  row->spec = job.spec;
  row->status = job.status;
  if (job.open.has_value()) *row->status.mutable_open() = *job.open;
  if (job.run != nullptr && !job.ended()) {
    WriteRun(StoreRun(*job.run, job.status), row->status);
  } else {
    WriteNoRun(row->status);
  }
  row->plan = job.plan;
  row->attempt = job.attempt;
  row->cancelled = job.cancelled;
  actions.push_back(PersistJob{std::move(row)});
  actions.push_back(NotifyJob{job.id});
}

ThinSteps JobTable::Thinned(const Job& job, int64_t before) const {
  ThinSteps thin = {.job = job.id, .before = before};
  while (before / thin.every > limits_.thinned_steps_max()) thin.every *= 2;
  return thin;
}

void JobTable::Forget(Actions& actions) {
  int ended = 0;
  for (const auto& [id, job] : jobs_) ended += job->ended();
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = *it->second;
    const bool old = job.ended() && job.run == nullptr;
    if (old && ended > limits_.ended_jobs_kept) {
      steps_kept_ -= StepWeights(job.steps);
      DropTimelines(job);
      --ended;
      actions.push_back(ForgetJob{job.id});
      it = jobs_.erase(it);
      continue;
    }
    if (old && steps_kept_ > limits_.steps_kept_max && !job.steps.empty()) {
      ThinSteps thin = Thinned(job, job.steps.back().step() + 1);
      thin.without_sequences = job.spec.sequence_losses();
      actions.push_back(thin);
      steps_kept_ -= StepWeights(job.steps);
      job.steps.clear();
    }
    ++it;
  }
}

WatchJobResponse JobTable::NewsSince(const Job& job, int64_t from_step,
                                     int64_t from_event) {
  WatchJobResponse news;
  *news.mutable_status() = job.status;
  auto step = std::upper_bound(
      job.steps.begin(), job.steps.end(), from_step,
      [](int64_t from, const StepRecord& s) { return from < s.step(); });
  for (; step != job.steps.end() && news.steps_size() < kWatchStepsMax;
       ++step) {
    *news.add_steps() = *step;
  }
  for (size_t i = std::max<int64_t>(0, from_event); i < job.events.size();
       ++i) {
    *news.add_events() = job.events[i];
  }
  if (job.plan) {
    *news.mutable_derived() = job.plan->derived();
    *news.mutable_mesh() = job.plan->mesh();
  }
  return news;
}

}  // namespace troupe
