#include "scheduler/cluster/rank_seats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe {

void RankSeat::Lose() {
  state = kLost;
  kept.clear();
  kept_by_attempt = 0;
}

std::string RankSeat::Name(int rank) const {
  return absl::StrCat(worker_name, " (rank ", rank, ")");
}

bool RankSeats::all_ready() const {
  return std::all_of(seats_.begin(), seats_.end(),
                     [](const RankSeat& seat) { return seat.ready(); });
}

bool RankSeats::awaits() const {
  return std::any_of(seats_.begin(), seats_.end(),
                     [](const RankSeat& seat) { return seat.awaited(); });
}

bool RankSeats::all_let_go() const {
  return std::none_of(seats_.begin(), seats_.end(),
                      [](const RankSeat& seat) { return seat.live(); });
}

int RankSeats::taken() const {
  return static_cast<int>(
      std::count_if(seats_.begin(), seats_.end(),
                    [](const RankSeat& seat) { return seat.taken(); }));
}

bool RankSeats::HasWorker(const std::string& name) const {
  return std::any_of(
      seats_.begin(), seats_.end(),
      [&name](const RankSeat& seat) { return seat.worker_name == name; });
}

int64_t RankSeats::FirstStep() const {
  const auto ready =
      std::find_if(seats_.begin(), seats_.end(),
                   [](const RankSeat& seat) { return seat.ready(); });
  return ready == seats_.end() ? 0 : ready->first_step;
}

int RankSeats::OfAnotherStart(int rank) const {
  const auto differs = [&](const RankSeat& seat) {
    return seat.first_step != 0 && seat.first_step != seats_[rank].first_step;
  };
  const auto other = std::find_if(seats_.begin(), seats_.end(), differs);
  return other == seats_.end() ? -1 : static_cast<int>(other - seats_.begin());
}

int64_t RankSeats::StepOfAll() const {
  const auto earlier = [](const RankSeat& a, const RankSeat& b) {
    return a.step < b.step;
  };
  return std::min_element(seats_.begin(), seats_.end(), earlier)->step;
}

int RankSeats::Laggard() const {
  const auto earlier = [](const RankSeat& a, const RankSeat& b) {
    if (a.step != b.step) return a.step < b.step;
    return a.heard < b.heard;
  };
  return static_cast<int>(
      std::min_element(seats_.begin(), seats_.end(), earlier) - seats_.begin());
}

}  // namespace troupe
