"""How fast is one call through the proxy, beside calling the upstream directly and through other gateways?"""
