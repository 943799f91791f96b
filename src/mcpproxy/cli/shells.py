"""How does a shell ask for completions? One script for each, which asks `mcpproxy __complete`."""

from __future__ import annotations

SCRIPTS = {
    "bash": r"""# mcpproxy completion for bash. Put into ~/.bashrc:  eval "$(mcpproxy completion bash)"
_mcpproxy() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == ":files" ]]; then
            compopt -o default 2>/dev/null
        else
            COMPREPLY+=("$line")
            [[ $line == *= ]] && compopt -o nospace 2>/dev/null
        fi
    done < <(command mcpproxy __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _mcpproxy mcpproxy
""",
    "zsh": r"""#compdef mcpproxy
# mcpproxy completion for zsh. Put into ~/.zshrc:  eval "$(mcpproxy completion zsh)"
_mcpproxy() {
    local value text
    local -a plain plain_texts open open_texts
    while IFS=$'\t' read -r value text; do
        if [[ $value == ":files" ]]; then
            _files
        elif [[ $value == *= ]]; then
            open+=("$value"); open_texts+=("$value${text:+  -- $text}")
        else
            plain+=("$value"); plain_texts+=("$value${text:+  -- $text}")
        fi
    done < <(command mcpproxy __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#plain )) && compadd -l -d plain_texts -a plain
    (( $#open )) && compadd -S '' -l -d open_texts -a open
}
if [[ $funcstack[1] == _mcpproxy ]]; then _mcpproxy "$@"; else compdef _mcpproxy mcpproxy; fi
""",
    "fish": r"""# mcpproxy completion for fish. Put into ~/.config/fish/completions/mcpproxy.fish
function __mcpproxy_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command mcpproxy __complete fish $words[2..] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c mcpproxy -f -a '(__mcpproxy_complete)'
""",
}
