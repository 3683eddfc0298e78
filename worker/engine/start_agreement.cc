#include "worker/engine/start_agreement.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// An outcome in the store: a line each for name, step, content and data; the
// rest is the damage.
struct Told {
  std::string name;
  StartOutcome outcome;
};
constexpr int kLines = 4;

std::string Format(const Told& told) {
  return absl::StrCat(absl::CEscape(told.name), "\n", told.outcome.step, "\n",
                      absl::CEscape(told.outcome.content), "\n",
                      absl::CEscape(told.outcome.data), "\n",
                      told.outcome.damage);
}

absl::StatusOr<Told> Parse(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(text, absl::MaxSplits('\n', kLines));
  Told told;
  if (lines.size() != kLines + 1 || !absl::CUnescape(lines[0], &told.name) ||
      !absl::SimpleAtoi(lines[1], &told.outcome.step) ||
      !absl::CUnescape(lines[2], &told.outcome.content) ||
      !absl::CUnescape(lines[3], &told.outcome.data)) {
    return absl::InternalError("a rank is of another version of Troupe");
  }
  told.outcome.damage = lines[kLines];
  return told;
}

}  // namespace

std::string StartAgreement::Key(const std::string& what) const {
  return absl::StrCat("start/", round_, "/", what);
}

absl::StatusOr<std::string> StartAgreement::Choose(const std::string& mine) {
  ++round_;
  if (place_.ranks == 1) return mine;
  if (place_.rank != 0) {
    return store_.Get(Key("choice"), absl::InfiniteDuration());
  }
  RETURN_IF_ERROR(store_.Set(Key("choice"), mine));
  return mine;
}

absl::StatusOr<bool> StartAgreement::Begin(const StartOutcome& mine) {
  CHECK_GE(round_, 0) << "nothing was chosen";
  damage_ = mine.damage;
  if (place_.ranks == 1) return damage_.empty();
  if (place_.rank == 0) {
    RETURN_IF_ERROR(Compare(mine));
    RETURN_IF_ERROR(store_.Set(Key("damage"), damage_));
    return damage_.empty();
  }
  RETURN_IF_ERROR(
      store_.Set(Key(absl::StrCat(place_.rank)), Format({place_.name, mine})));
  ASSIGN_OR_RETURN(damage_,
                   store_.Get(Key("damage"), absl::InfiniteDuration()));
  return damage_.empty();
}

absl::Status StartAgreement::Compare(const StartOutcome& mine) {
  absl::Status differs;
  std::string reader;  // the first that reads data
  std::string data;
  const auto compare_data = [&](const std::string& who,
                                const std::string& theirs) {
    if (data.empty()) {
      reader = who;
      data = theirs;
    } else if (!theirs.empty() && theirs != data) {
      differs.Update(absl::FailedPreconditionError(absl::StrCat(
          "data.tokens: ", who, " has ", theirs, ", and ", reader, " has ",
          data, ": all workers must see the same file under its path")));
    }
  };
  compare_data(absl::StrCat(place_.name, " (rank 0)"), mine.data);
  for (int rank = 1; rank < place_.ranks; ++rank) {
    ASSIGN_OR_RETURN(
        const std::string text,
        store_.Get(Key(absl::StrCat(rank)), absl::InfiniteDuration()));
    ASSIGN_OR_RETURN(const Told told, Parse(text));
    const StartOutcome& theirs = told.outcome;
    compare_data(absl::StrCat(told.name, " (rank ", rank, ")"), theirs.data);
    if (!theirs.damage.empty()) {
      if (damage_.empty()) damage_ = theirs.damage;
    } else if (mine.damage.empty() &&
               (theirs.step != mine.step || theirs.content != mine.content)) {
      differs.Update(absl::FailedPreconditionError(absl::StrCat(
          told.name, " (rank ", rank, ") starts after step ", theirs.step, " (",
          theirs.content, "), and ", place_.name, " (rank 0) after step ",
          mine.step, " (", mine.content,
          "): what they read is not the same; all workers must see the same "
          "folder under its path")));
    }
  }
  return damage_.empty() ? differs : absl::OkStatus();
}

}  // namespace troupe
