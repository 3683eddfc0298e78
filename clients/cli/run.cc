#include "clients/cli/run.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/closest.h"

namespace troupe {
namespace {

constexpr char kAbout[] =
    "Troupe trains neural networks across many devices.\n\n"
    "A first session:\n"
    "  troupe up --workers 4 --dir ~/troupe\n"
    "  export TROUPE_DIR=~/troupe\n"
    "  troupe data prepare book.txt --tokenizer bytes --out book.tokens\n"
    "  troupe submit job.yaml --watch\n"
    "  troupe generate latest --prompt \"Once upon\"\n"
    "  troupe down";

struct Entry {
  CLI::App* app;
  std::unique_ptr<Command> command;
};

// The subcommand's place in the tree: "data prepare" is `prepare` under `data`.
// A group that is a command of its own, listed before, needs no subcommand.
CLI::App* AddSubcommand(CLI::App& root, const CommandRow& row) {
  const std::vector<std::string> words = absl::StrSplit(row.name, ' ');
  CLI::App* parent = &root;
  if (words.size() == 2) {
    const auto groups = root.get_subcommands(
        [&](CLI::App* app) { return app->get_name() == words[0]; });
    if (groups.empty()) {
      parent = root.add_subcommand(words[0], row.summary);
      parent->require_subcommand(1);
    } else {
      parent = groups.front();
    }
  }
  return parent->add_subcommand(words.back(), row.summary);
}

int ReportUsage(absl::string_view what, const std::string& command,
                Console& console) {
  console.err << "troupe: " << what << " (see troupe " << command
              << (command.empty() ? "" : " ") << "--help)\n";
  return 2;
}

int Report(const absl::Status& status, const std::string& command,
           Console& console) {
  constexpr absl::string_view kUsage = "usage: ";
  if (status.ok()) return 0;
  if (absl::IsCancelled(status)) return 130;
  absl::string_view message = status.message();
  if (absl::StartsWith(message, kUsage)) {
    return ReportUsage(message.substr(kUsage.size()), command, console);
  }
  console.err << "troupe: " << message << "\n";
  return 1;
}

// What is wrong with arguments that could not be read.
std::string Refusal(const CLI::ParseError& error,
                    const std::vector<std::string>& arguments,
                    const CLI::App& root) {
  const CLI::App* app = &root;
  size_t words = 0;
  for (; !app->get_subcommands().empty(); ++words) {
    app = app->get_subcommands().front();
  }
  // The parser says only that a command is missing.
  if (app->get_require_subcommand_min() == 0 || words >= arguments.size()) {
    return error.what();
  }
  std::vector<std::string> names;
  for (const CLI::App* known : app->get_subcommands({})) {
    names.push_back(known->get_name());
  }
  const std::string near = ClosestName(arguments[words], names);
  return absl::StrCat("no such command: ", arguments[words],
                      near.empty() ? "" : "; did you mean ", near,
                      near.empty() ? "" : "?");
}

// The words of the subcommand that the user got to: "data prepare".
std::string ChosenCommand(const CLI::App& root) {
  std::string words;
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    absl::StrAppend(&words, words.empty() ? "" : " ", app->get_name());
  }
  return words;
}

int RunParsed(const std::vector<std::string>& arguments, Console& console) {
  CLI::App root(kAbout, "troupe");
  root.require_subcommand(1);
  root.get_formatter()->column_width(30);
  root.set_help_flag("-h,--help", "Print this help");
  std::vector<Entry> entries;
  for (const CommandRow& row : CommandTable()) {
    Entry entry{AddSubcommand(root, row), row.make()};
    Flags flags(*entry.app);
    entry.command->Declare(flags);
    entries.push_back(std::move(entry));
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    root.parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return root.exit(e, console.out, console.err);
    return ReportUsage(Refusal(e, arguments, root), ChosenCommand(root),
                       console);
  }
  for (const Entry& entry : entries) {
    const bool chosen =
        entry.app->parsed() && entry.app->get_subcommands().empty();
    if (!chosen) continue;
    return Report(entry.command->Run(console), ChosenCommand(root), console);
  }
  return ReportUsage("which command?", "", console);
}

}  // namespace

int RunTroupe(const std::vector<std::string>& arguments, Console& console) {
  const int code = RunParsed(arguments, console);
  // What a command says is its work, too: a full disk must not look like it.
  console.out.flush();
  if (console.out.good() || code != 0) return code;
  console.err << "troupe: the output could not be written, not all of it; is "
                 "the disk full?\n";
  return 1;
}

}  // namespace troupe
