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
# mcpproxy completion for zsh. Put into ~/.zshrc, behind compinit:  eval "$(mcpproxy completion zsh)"
_mcpproxy() {
    local value text
    local -a plain plain_texts open open_texts
    while IFS=$'\t' read -r value text; do
        if [[ $value == ":files" ]]; then
            [[ $PREFIX == --*=* ]] && compset -P '*='
            _files
        elif [[ $value == *= ]]; then
            open+=("$value"); open_texts+=("$value${text:+  -- $text}")
        else
            plain+=("$value"); plain_texts+=("$value${text:+  -- $text}")
        fi
    done < <(command mcpproxy __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#plain )) && compadd -l -d plain_texts -a plain
    (( $#open )) && compadd -S '' -l -d open_texts -a open
}
if [[ $funcstack[1] == _mcpproxy ]]; then _mcpproxy "$@"; else compdef _mcpproxy mcpproxy; fi
""",
    "fish": r"""# mcpproxy completion for fish. Put into ~/.config/fish/completions/mcpproxy.fish
function __mcpproxy_offers
    set -l words (commandline -opc) (commandline -ct | string replace -r '^["\']' '')
    command mcpproxy __complete fish $words[2..] 2>/dev/null
end
function __mcpproxy_wants_a_file
    contains -- ":files" (__mcpproxy_offers)
end
complete -c mcpproxy -f -a '(__mcpproxy_offers | string match -v ":files")'
complete -c mcpproxy -n __mcpproxy_wants_a_file -F
""",
}
