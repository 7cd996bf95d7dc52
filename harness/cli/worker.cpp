// Hidden verb `assay worker REQUEST-FILE`: the child process of a trial. Not for people.
#include <memory>
#include <string>

#include "harness/cli/verb.h"
#include "harness/trial/trial.h"

namespace assay::cli {

void add_worker(CLI::App& app, Invocation& invocation) {
  const auto request = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand("worker", "The child process of a trial");
  verb->group("");  // not shown in the help
  verb->add_option("request", *request, "File written by the parent")->required();
  verb->callback([request, &invocation] {
    invocation.action = [request]() -> Result<ExitStatus> {
      return static_cast<ExitStatus>(worker_main(*request));
    };
  });
}

}  // namespace assay::cli
