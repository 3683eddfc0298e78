// Text to ids by a tokenizer.json, beside the `tokenizers` library in the same
// run.
//
//   tokenizer_bench TOKENIZER.json TEXT [PYTHON]
//
// Times Encode of the whole text on one thread, and PrepareTokens (which reads,
// unpacks, cuts, encodes, writes) on one thread and on two: of the text, of the
// text compressed, and of its lines as compressed JSON lines. MB are of the
// text. PYTHON is an interpreter that has `tokenizers`: then tokenizer_peer.py
// encodes the same text on one thread, the ids must be equal, and the ratios of
// the rates are printed.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/shell_word.h"
#include "storage/dataset/open_tokenizer.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/corpus/prepare.h"

namespace troupe {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Each line that is not empty as a document. Bytes that are not UTF-8 become
// U+FFFD.
std::string AsJsonLines(const std::string& text) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty()) continue;
    const nlohmann::json object = {{"text", std::string(line)}};
    out +=
        object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n";
  }
  return out;
}

// The faster of two runs, each with a tokenizer of its own.
double Seconds(const std::string& path,
               const std::function<void(const Tokenizer&)>& run) {
  double best = 0;
  for (int i = 0; i < 2; ++i) {
    const auto opened = OpenTokenizer(path);
    CHECK_OK(opened.status());
    const absl::Time start = absl::Now();
    run(*opened->tokenizer);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

void Print(const std::string& what, double seconds, size_t bytes,
           double peer_seconds) {
  std::printf("%-32s %8.3f s %8.1f MB/s", what.c_str(), seconds,
              bytes / seconds / 1e6);
  if (peer_seconds > 0)
    std::printf("   %.2f x the peer", peer_seconds / seconds);
  std::printf("\n");
}

// Its seconds; checks its ids.
double RunPeer(const std::vector<std::string>& arguments,
               const std::vector<int32_t>& ids, const std::string& out) {
  const std::string script = "tests/bench/tokenizer_peer.py";
  const std::string command = absl::StrCat(
      ShellWord(arguments[2]), " ", script, " ", ShellWord(arguments[0]), " ",
      ShellWord(arguments[1]), " ", ShellWord(out));
  std::FILE* const pipe = popen(command.c_str(), "r");
  CHECK(pipe != nullptr);
  double seconds = 0;
  CHECK(std::fscanf(pipe, "%lf", &seconds) == 1);
  CHECK(pclose(pipe) == 0);
  const std::string bytes = ReadFile(out);
  std::vector<int32_t> theirs(bytes.size() / 4);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(theirs.data()));
  const auto [ours_at, theirs_at] =
      std::mismatch(ids.begin(), ids.end(), theirs.begin(), theirs.end());
  if (ours_at == ids.end() && theirs_at == theirs.end()) return seconds;
  std::cerr << "the ids differ from token " << ours_at - ids.begin() << " of "
            << ids.size() << " and " << theirs.size() << "\n";
  std::exit(1);
}

void Run(const std::vector<std::string>& arguments) {
  const std::string text = ReadFile(arguments[1]);
  const std::string out = (std::filesystem::temp_directory_path() /
                           absl::StrCat("tokenizer_bench.", getpid()))
                              .string();
  std::vector<int32_t> ids;
  const double whole = Seconds(arguments[0], [&](const Tokenizer& tokenizer) {
    ids.clear();
    CHECK_OK(tokenizer.Encode(text, ids));
  });
  const double peer = arguments.size() < 3 ? 0 : RunPeer(arguments, ids, out);
  std::printf("%zu bytes, %zu tokens%s\n", text.size(), ids.size(),
              peer > 0 ? ", the peer's" : "");
  if (peer > 0) Print("tokenizers, one thread", peer, text.size(), 0);
  Print("Encode, one thread", whole, text.size(), peer);
  const std::string packed = out + ".txt.zst";
  const std::string lines = out + ".jsonl.zst";
  WriteFile(packed, Zstded(text));
  WriteFile(lines, Zstded(AsJsonLines(text)));
  for (const auto& [what, path] :
       {std::pair("plain", arguments[1]), std::pair(".txt.zst", packed),
        std::pair(".jsonl.zst", lines)}) {
    for (const int threads : {1, 2}) {
      const double seconds =
          Seconds(arguments[0], [&, path = path](const Tokenizer& tokenizer) {
            const auto prepared =
                Prepare(tokenizer, {.inputs = {path},
                                    .path = out,
                                    .options = {.threads = threads}});
            CHECK_OK(prepared.status());
            const bool has_eos = tokenizer.eos_id().has_value();
            CHECK(path == lines ||
                  prepared->header.token_count == ids.size() + has_eos);
          });
      Print(absl::StrCat(what, ", ", threads, " thread(s)"), seconds,
            text.size(), peer);
    }
  }
  for (const std::string& path : {out, packed, lines}) {
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: tokenizer_bench TOKENIZER.json TEXT [PYTHON]\n";
    return 2;
  }
  troupe::Run({argv + 1, argv + argc});
}
