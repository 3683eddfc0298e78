#include "clients/cli/progress.h"

#include <ostream>
#include <utility>

#include "absl/time/clock.h"
#include "clients/cli/view/format.h"

namespace troupe {
namespace {

constexpr absl::Duration kEvery = absl::Milliseconds(500);

}  // namespace

Progress::Progress(Console& console, Interrupt& interrupt, std::string what)
    : console_(console),
      interrupt_(interrupt),
      what_(std::move(what)),
      shown_at_(absl::Now()) {}

Progress::~Progress() {
  if (shown_) console_.err << "\n";
}

absl::Status Progress::Show(int64_t done, int64_t total) {
  if (interrupt_.Arrived()) return absl::CancelledError("interrupted");
  if (!console_.terminal || absl::Now() - shown_at_ < kEvery) {
    return absl::OkStatus();
  }
  shown_at_ = absl::Now();
  shown_ = true;
  console_.err << "\r" << what_ << BytesText(done) << " of " << BytesText(total)
               << " (" << PercentText(static_cast<double>(done) / total)
               << ")  " << std::flush;
  return absl::OkStatus();
}

}  // namespace troupe
