#include "scheduler/cluster/rank_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/plan/meeting.h"
#include "proto/plan/memory.h"
#include "scheduler/cluster/rank_position.h"

namespace troupe {
namespace {

// "FORWARD u6 m3", and of which program, unless that is the usual one.
std::string Doing(const RankReport& report, const RankView& view) {
  const Program::Kind program = report.progress.program();
  return absl::StrCat(
      InstructionName(view.lane->current()),
      program == Program::TRAIN ? "" : " of ",
      program == Program::TRAIN ? "" : Program::Kind_Name(program));
}

// "written 2.89 GiB of 11.5 GiB of the checkpoint of step 50 in 75 s, nothing
// more for 61 s".
std::string DiskWords(const RankReport& report, absl::Duration age) {
  const DiskProgress& disk = report.progress.disk();
  return absl::StrFormat(
      "%s %s of %s of %s in %s, nothing more for %s",
      disk.writes() ? "written" : "read", ReadableBytes(disk.bytes()),
      ReadableBytes(disk.bytes_total()),
      disk.writes() ? absl::StrCat("the checkpoint of step ", disk.step())
                    : "what it starts with",
      SecondsWords(absl::Seconds(disk.seconds()) + age),
      SecondsWords(report.heard + age - report.disk_moved));
}

}  // namespace

bool DiskGotOn(const RankProgress& before, const RankProgress& after) {
  if (!after.has_disk()) return false;
  const DiskProgress& was = before.disk();
  const DiskProgress& is = after.disk();
  return !before.has_disk() || was.writes() != is.writes() ||
         was.step() != is.step() || is.bytes() > was.bytes();
}

RankView ViewOf(const RankReport& report, const Lanes& lanes,
                const ViewOptions& options) {
  const absl::Duration age = options.now - report.heard;
  const RankProgress& progress = report.progress;
  const LaneProgress* lane = Blocking(progress, lanes);
  if (age > options.silent_after) return {RankView::kSilent, lane, age, age};
  if (lane == nullptr) {
    return {RankView::kBetween, nullptr,
            absl::Seconds(progress.step_seconds()) + age, age};
  }
  const bool meets = Meets(lane->current().kind());
  return {meets ? RankView::kMeets : RankView::kAlone, lane,
          absl::Seconds(lane->seconds()) + age, age};
}

std::string EndWords(int rank, const RankReport& report, const RankView& view) {
  const std::string who = absl::StrCat("rank ", rank, " has ");
  const std::string time = absl::StrCat(" for ", SecondsWords(view.time));
  std::string what;
  switch (view.state) {
    case RankView::kSilent:
      what = absl::StrCat("not been heard", time,
                          view.lane == nullptr ? "" : ", and was in ",
                          view.lane == nullptr ? "" : Doing(report, view));
      break;
    case RankView::kBetween:
      if (report.progress.has_disk()) {
        what = DiskWords(report, view.age);
        break;
      }
      what = absl::StrCat("been between programs", time, ", after step ",
                          report.progress.step());
      break;
    case RankView::kAlone:
      what = absl::StrCat("been in ", Doing(report, view), time);
      break;
    case RankView::kMeets:
      what = absl::StrCat("been in ", Doing(report, view), time,
                          ", and so have all that it needs");
      break;
  }
  return absl::StrCat(who, what, " (", report.worker_name, ")");
}

std::string SecondsWords(absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  if (seconds >= 10) return absl::StrFormat("%.0f s", seconds);
  if (seconds >= 1) return absl::StrFormat("%.1f s", seconds);
  return absl::StrFormat("%.2g s", seconds);
}

}  // namespace troupe
