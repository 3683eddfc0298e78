#include "tests/storage/disk/power_loss.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/base/philox.h"
#include "tests/storage/disk/recorder.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// More changes that may be lost than this: some choices of them, not all.
constexpr int kAllChoicesMax = 11;
constexpr int kDrawnChoices = 1500;

// Carries one change out.
void Apply(const Change& change, DiskObjects& objects) {
  DiskObject& object = objects[change.object];
  switch (change.kind) {
    case Change::kWrite:
      object.bytes.resize(std::max<size_t>(
          object.bytes.size(), change.offset + change.bytes.size()));
      object.bytes.replace(change.offset, change.bytes.size(), change.bytes);
      return;
    case Change::kResize:
      object.bytes.resize(change.offset);
      return;
    case Change::kName:
      for (const auto& [name, id] : change.names) {
        if (id == 0) {
          object.names.erase(name);
        } else {
          object.names[name] = id;
        }
      }
      return;
    case Change::kSync:
      return;
  }
}

// A tree as a text: what makes two of them different.
std::string TextOf(const DiskObjects& objects, int id,
                   const std::string& path) {
  const DiskObject& object = objects.at(id);
  if (!object.is_directory) {
    return absl::StrCat(path, ":", object.bytes.size(), ":", object.bytes,
                        "\n");
  }
  std::string text = absl::StrCat(path, "/\n");
  for (const auto& [name, child] : object.names) {
    absl::StrAppend(&text, TextOf(objects, child, path + "/" + name));
  }
  return text;
}

void Lay(const DiskObjects& objects, int id, const std::string& path) {
  const DiskObject& object = objects.at(id);
  if (!object.is_directory) return WriteText(path, object.bytes);
  fs::create_directory(path);
  for (const auto& [name, child] : object.names) {
    Lay(objects, child, path + "/" + name);
  }
}

// Which of the first `count` changes no sync covers.
std::vector<int> Losable(const std::vector<Change>& changes, int count) {
  std::vector<int> losable;
  std::set<int> synced;
  for (int i = count - 1; i >= 0; --i) {
    if (changes[i].kind == Change::kSync) {
      synced.insert(changes[i].object);
    } else if (synced.count(changes[i].object) == 0) {
      losable.push_back(i);
    }
  }
  std::reverse(losable.begin(), losable.end());
  return losable;
}

// Choices of what is lost, as a set of bits each: all, or, of many changes,
// nothing but one, all but one, and some that are drawn.
std::vector<std::vector<bool>> Choices(int count) {
  std::vector<std::vector<bool>> choices;
  if (count <= kAllChoicesMax) {
    for (int bits = 0; bits < 1 << count; ++bits) {
      std::vector<bool>& lost = choices.emplace_back(count);
      for (int i = 0; i < count; ++i) lost[i] = (bits >> i & 1) != 0;
    }
    return choices;
  }
  choices.emplace_back(count, false);
  choices.emplace_back(count, true);
  for (int i = 0; i < count; ++i) {
    for (const bool lost : {false, true}) {
      choices.emplace_back(count, lost);
      choices.back()[i] = !lost;
      // All before it, and none after.
      choices.emplace_back(count, lost);
      std::fill_n(choices.back().begin(), i, !lost);
    }
  }
  uint64_t drawn = 0;
  for (int k = 0; k < kDrawnChoices; ++k) {
    std::vector<bool>& lost = choices.emplace_back(count);
    for (int i = 0; i < count; ++i) {
      lost[i] = PhiloxUint32({.seed = 7}, drawn++) % 2 != 0;
    }
  }
  return choices;
}

}  // namespace

FullDisk::FullDisk(const std::string& root) { TheRecorder().Fill(root); }

FullDisk::~FullDisk() { TheRecorder().Fill(""); }

DiskRecording::DiskRecording(const std::string& root, RecordingOptions options)
    : root_(root) {
  TheRecorder().Start(root, options);
}

DiskRecording::~DiskRecording() {
  if (!stopped_) TheRecorder().Stop();
}

int DiskRecording::EachOutcome(
    const std::function<void(const CrashOutcome&)>& look) {
  TheRecorder().Stop();
  stopped_ = true;
  const DiskObjects before = TheRecorder().before();
  const std::vector<Change>& changes = TheRecorder().changes();
  const TempDir trees;
  std::set<std::string> seen;
  int trees_laid = 0;
  DiskObjects done = before;
  for (const Change& change : changes) Apply(change, done);
  Lay(done, kRootObject, trees.File("done"));
  {
    // What is there now must be what the changes lead to.
    Recorder real;
    real.Start(root_, {});
    EXPECT_EQ(TextOf(real.before(), kRootObject, ""),
              TextOf(done, kRootObject, ""))
        << "something went past the recording";
  }
  std::vector<std::string> calls;
  for (int count = 0; count <= static_cast<int>(changes.size()); ++count) {
    if (count > 0) calls.push_back(changes[count - 1].text);
    const bool returned = count == static_cast<int>(changes.size());
    const std::vector<int> losable = Losable(changes, count);
    for (const std::vector<bool>& lost :
         Choices(static_cast<int>(losable.size()))) {
      DiskObjects objects = before;
      size_t next = 0;
      std::vector<std::string> gone;
      for (int i = 0; i < count; ++i) {
        const bool may = next < losable.size() && losable[next] == i;
        if (may && lost[next++]) {
          gone.push_back(changes[i].text);
          continue;
        }
        Apply(changes[i], objects);
      }
      if (!seen.insert(absl::StrCat(returned, TextOf(objects, kRootObject, "")))
               .second) {
        continue;
      }
      const std::string root = trees.File(absl::StrCat(trees_laid++));
      Lay(objects, kRootObject, root);
      const size_t shown = std::min<size_t>(calls.size(), 6);
      look({.root = root,
            .returned = returned,
            .after = absl::StrCat(
                "...; ", absl::StrJoin(calls.end() - shown, calls.end(), "; "),
                "; lost: ", absl::StrJoin(gone, "; "))});
      fs::remove_all(root);
      if (testing::Test::HasFailure()) return trees_laid;  // one is enough
    }
  }
  return trees_laid;
}

}  // namespace troupe
